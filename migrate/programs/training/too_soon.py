"""Models that cannot be made: their class stands below the line that asks for it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import DEFINITIONS, start_of
from migrate.analysis.units import Module

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts


def too_soon(facts: Facts, optimizers: Iterable[ast.AST]) -> str | None:
    """What is asked for above its definition by a program whose optimizers these are; None: nothing."""
    for made in _made(facts, optimizers):
        name, unit = made.func, facts.unit(made)
        if not isinstance(name, ast.Name) or not isinstance(unit, Module):
            continue
        bound = [node for node in facts.own(unit) if _binds(node, name.id)]
        definitions = [node for node in bound if isinstance(node, DEFINITIONS)]
        first = min((node.lineno for node in definitions), default=0)
        if len(bound) == len(definitions) and first > made.lineno:
            return f"`{name.id}` is asked for at line {made.lineno}, and defined at line {first}"
    return None


def _made(facts: Facts, optimizers: Iterable[ast.AST]) -> Iterator[ast.Call]:
    """The calls whose unknown results optimizers are given something of."""
    for optimizer in sorted(optimizers, key=start_of):
        given = optimizer.args[:1] if isinstance(optimizer, ast.Call) else []
        for node in (node for each in given for node in ast.walk(each) if isinstance(node, ast.Name)):
            unknown = (value.origin for value in facts.values(node) if value.role is Role.UNKNOWN)
            yield from sorted((made for made in unknown if isinstance(made, ast.Call)), key=start_of)


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, DEFINITIONS):
        return node.name == name
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) == name
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
