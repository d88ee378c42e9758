"""Calls that call something else than a function of the program that has the name: `torch.save(x)` for `def save(x)`.

What the first pass leaves is looked at by its text alone. So it is said before what each call was seen to call, by the
way in which it is written; where nothing was seen, what is imported from elsewhere is a library's.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from migrate.analysis.texts import text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree

Written: TypeAlias = "tuple[str, str]"  # the path of a file, and how it writes what it calls


def foreign(facts: Facts) -> Iterator[Written]:
    """The calls that were seen to call nothing of the project."""
    for use in facts.calls_anywhere:
        values = facts.values(use.node.func)
        if values and all(value.unit is None for value in values):
            yield use.unit.module.file.path, ast.unparse(use.node.func)


class Foreign:
    """Such calls in the files of a round."""

    def __init__(self, seen: frozenset[Written], trees: Mapping[str, Tree]) -> None:
        self._seen = seen
        self._trees = trees

    def is_called(self, path: str, func: ast.expr) -> bool:
        """Whether a call in a file, of what is written there, is one of them."""
        if (path, text_of(func)) in self._seen:
            return True
        root = func
        while isinstance(root, ast.Attribute):
            root = root.value
        return root is not func and isinstance(root, ast.Name) and root.id in self._libraries[path]

    @cached_property
    def _libraries(self) -> dict[str, set[str]]:
        """The names under which each file imports what is none of these files."""
        own = {part for path in self._trees for part in path.removesuffix(".py").split("/")}
        found: dict[str, set[str]] = {path: set() for path in self._trees}
        for path, tree in self._trees.items():
            for node in tree.nodes:
                if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level):
                    for alias in node.names:
                        module = alias.name if isinstance(node, ast.Import) else node.module or ""
                        if module.split(".")[0] not in own:
                            found[path].add(alias.asname or alias.name.split(".")[0])
        return found
