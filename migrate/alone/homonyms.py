"""Functions and classes of one name in several files: every script has a `main()`, and means its own.

What is looked at by its text alone is told apart by name. So a name that several files give to something of their own
is replaced by one that says in which file it is, if it can be seen for each file which one it means.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from migrate.analysis.syntax import Tree

#: The path of a file and a name in it → the name that no other file's function has.
Homonyms: TypeAlias = "Mapping[tuple[str, str], str]"
_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def homonyms(trees: Mapping[str, Tree]) -> Homonyms:
    """The names that several files define at their top, and nothing else has, as far as it is seen who means which."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in trees.items():
        for statement in tree.root.body:
            if isinstance(statement, _DEFINED):
                found[statement.name].append(path)
    names = {name for name, paths in found.items() if len(paths) == len(set(paths)) > 1}
    for tree in trees.values():
        names -= set(_used_otherwise(tree))
    meant = {(path, name): path for name in names for path in found[name]}
    for path, tree in trees.items():
        for name, module, is_star in _imported(tree, sorted(names)):
            homes = [home for home in found[name] if is_home(module, home)]
            if not homes and (is_star or (path, name) not in meant):
                continue  # something of a library, in this file
            if len(homes) != 1 or meant.setdefault((path, name), homes[0]) != homes[0]:
                names.discard(name)
    return {(path, name): f"{name}@{home}" for (path, name), home in meant.items() if name in names}


def _used_otherwise(tree: Tree) -> Iterator[str]:
    """The names of methods, of functions inside of others, of attributes, and what an import gives another name."""
    at_top = set(map(id, tree.root.body))
    for node in tree.nodes:
        if isinstance(node, _DEFINED) and id(node) not in at_top:
            yield node.name
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (name for alias in node.names if alias.asname for name in (alias.name, alias.asname))


def _imported(tree: Tree, names: Collection[str]) -> Iterator[tuple[str, str | None, bool]]:
    """Which of the names a file imports, from which module, and whether by a star, which may bring any."""
    for node in tree.nodes:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                is_star = alias.name == "*"
                yield from ((name, node.module, is_star) for name in names if is_star or alias.name == name)


def is_home(module: str | None, path: str) -> bool:
    """Whether an import may be from a file, by the last part of its name."""
    parts = path.removesuffix(".py").split("/")
    if parts[-1] == "__init__":
        parts.pop()
    return module is None or not parts or module.rpartition(".")[2] == parts[-1]
