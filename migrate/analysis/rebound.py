"""Imports whose name is another object's before anybody else can read it: `import model`, then `model = model.Net()`.

What a function sees under a name of its module is joined over all that bind it. It never sees the import if the name is
given away at the top level, and nothing between the two statements leads to a function that reads it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import DEFINITIONS, FUNCTIONS, is_main_guard, reads

if TYPE_CHECKING:
    from collections.abc import Iterator

_IMPORTS = (ast.Import, ast.ImportFrom)


def rebound(tree: ast.Module) -> frozenset[tuple[ast.stmt, str]]:
    """The imports at the top level of a file, with the names of them that no function sees."""
    imported: dict[str, int] = {}
    found = set()
    lines = list(_in_line(tree))
    for number, statement in enumerate(lines):
        for name in _given_away(statement) & imported.keys():
            start = imported.pop(name)
            if not _is_read(tree, lines[start + 1 : number + 1], name):
                found.add((lines[start], name))
        if isinstance(statement, _IMPORTS):
            imported.update((alias.asname or alias.name, number) for alias in statement.names)
    return frozenset(found)


def _in_line(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run where a file is started, one after the other."""
    for statement in tree.body:
        if isinstance(statement, ast.If) and is_main_guard(statement):
            yield from statement.body
        else:
            yield statement


def _given_away(statement: ast.stmt) -> set[str]:
    if not isinstance(statement, ast.Assign):
        return set()
    return {target.id for target in statement.targets if isinstance(target, ast.Name)}


def _is_read(tree: ast.Module, between: list[ast.stmt], name: str) -> bool:
    """Whether statements may lead to a function or class of the file that reads a name."""
    defined = [s for s in tree.body if isinstance(s, DEFINITIONS)]
    reading = {name}
    while more := {each.name for each in defined if each.name not in reading and reads(each) & reading}:
        reading |= more
    run = [statement for statement in between if not isinstance(statement, FUNCTIONS)]
    return any(reads(s) & (reading if isinstance(s, ast.ClassDef) else reading - {name}) for s in run)
