"""What the names of a file stand for by its imports, in code that was not run."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree


class Imported(dict["Tree", "Mapping[str, frozenset[str]]"]):
    """For each file the dotted names by the name that an import gives them; each file is gone through once."""

    def __init__(self, _: Facts) -> None:
        super().__init__()

    def __missing__(self, tree: Tree) -> Mapping[str, frozenset[str]]:
        self[tree] = _by_name(tree)
        return self[tree]


def _by_name(tree: Tree) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for node in tree.nodes:
        for alias in node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
            root = alias.asname or alias.name.partition(".")[0]
            if isinstance(node, ast.ImportFrom):
                name = f"{node.module}.{alias.name}"
            else:
                name = alias.name if alias.asname else root
            found.setdefault(root, set()).add(name)
    return {root: frozenset(names) for root, names in found.items()}
