"""Where a program reads the variable that it chooses its device by, between one statement and another."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import line_of, own_nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function
    from migrate.programs.device.choices import Choice


def read_after(facts: Facts, choice: Choice, guard: ast.stmt) -> Iterator[ast.AST]:
    """Where the module reads a variable outside of the main program, which gives it another value."""
    for node in facts.own(choice.unit):
        if line_of(node) > (guard.end_lineno or 0) and _is_read(node, choice.target):
            yield node


def read_between(facts: Facts, choice: Choice, end: ast.stmt) -> Iterator[ast.AST]:
    """Where the variable of a choice is read before another statement, by what is called there, too."""
    start = choice.statement.end_lineno or 0
    for node in facts.own(choice.unit):
        if not start < line_of(node) < end.lineno:
            continue
        if _is_read(node, choice.target):
            yield node
        elif isinstance(node, ast.Call):
            yield from _read_by(facts, facts.targets(node), choice.target, set())


def _read_by(facts: Facts, units: Iterable[Function], target: str, seen: set[Function]) -> Iterator[ast.AST]:
    for unit in units:
        if unit in seen:
            continue
        seen.add(unit)
        for node in own_nodes(unit.node):
            if _is_read(node, target):
                yield node
            elif isinstance(node, ast.Call):
                yield from _read_by(facts, facts.targets(node), target, seen)


def reads(root: ast.AST, target: str) -> bool:
    return any(_is_read(node, target) for node in ast.walk(root))


def _is_read(node: ast.AST, target: str) -> bool:
    """Whether a node reads a name, or an attribute that is called so, whosever it is."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
        return False
    return node.id == target if isinstance(node, ast.Name) else node.attr == target.rpartition(".")[2] != target
