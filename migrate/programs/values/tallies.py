"""What any loop over batches adds up or collects, and where that is reset, fed and read.

`accumulators.py` decides what becomes of the names that a training loop adds up; this is only where things happen: for
names and attributes (`self.total += loss.item()`), in training and in evaluation loops.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import same
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact

_GROWING = frozenset({"append", "extend"})
_COMPUTED = FROM_LOADER | {Role.TENSOR}


class Shape(str, Enum):
    """What becomes of the values."""

    SUM = "a sum"
    LIST = "a list"


@dataclass(frozen=True, slots=True)
class Tally:
    """A name or attribute, as it is written, that a loop fills from its batches."""

    target: str
    shape: Shape
    loop: LoopFact
    fed: tuple[ast.stmt, ...]
    reset: tuple[ast.stmt, ...]  # what gives it a value that does not come from itself
    read_inside: tuple[ast.expr, ...]
    read_outside: tuple[ast.expr, ...]  # in its function; of an attribute in the whole class


def tallies(facts: Facts, loop: LoopFact) -> tuple[Tally, ...]:
    """The tallies of one loop, in the order in which they are first fed."""
    found: dict[tuple[str, Shape], list[tuple[ast.stmt, ast.expr]]] = {}
    for node in ast.walk(loop.node):
        grown = _grown(node)
        if grown is None or not isinstance(grown[0], (ast.Name, ast.Attribute)):
            continue
        target, value, shape = grown
        # A list may hold anything of a batch, a sum only what is computed from it: `i += 1` is no tally.
        if any(roles(facts.values(inner)) & _COMPUTED for inner in _expressions(value)):
            found.setdefault((ast.unparse(target), shape), []).append((facts.tree(node).statement(node), target))
    ordered = sorted(found.items(), key=lambda item: item[1][0][0].lineno)
    return tuple(_tally(facts, loop, target, shape, fed) for (target, shape), fed in ordered)


def _grown(node: ast.AST) -> tuple[ast.expr, ast.expr, Shape] | None:
    """`t += x`, `t = t + x`, `t.append(x)`: the target, what is added, and how."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return node.target, node.value, Shape.SUM
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Add):
        if same(node.targets[0], node.value.left):
            return node.targets[0], node.value.right, Shape.SUM
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GROWING:
        if len(node.args) == 1:
            return node.func.value, node.args[0], Shape.LIST
    return None


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    return (inner for inner in ast.walk(node) if isinstance(inner, ast.expr))


def _tally(facts: Facts, loop: LoopFact, target: str, shape: Shape, fed: list[tuple[ast.stmt, ast.expr]]) -> Tally:
    feeding = {id(statement) for statement, _ in fed}
    reset: list[ast.stmt] = []
    inside: list[ast.expr] = []
    outside: list[ast.expr] = []
    for node in _scope(facts, loop, fed[0][1]):
        if not isinstance(node, (ast.Name, ast.Attribute)) or ast.unparse(node) != target:
            continue
        statement = facts.tree(node).statement(node)
        if id(statement) in feeding:
            continue
        if isinstance(node.ctx, ast.Store):
            if not isinstance(statement, ast.AugAssign):
                reset.append(statement)
        elif any(above is loop.node for above in facts.tree(node).up(node)):
            inside.append(node)
        else:
            outside.append(node)
    statements = tuple(dict.fromkeys(statement for statement, _ in fed))
    return Tally(target, shape, loop, statements, tuple(dict.fromkeys(reset)), tuple(inside), tuple(outside))


def _scope(facts: Facts, loop: LoopFact, target: ast.expr) -> Iterable[ast.AST]:
    """The code in which the target has this meaning: the function; of an attribute of the object the whole class."""
    unit = loop.unit
    is_own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    if isinstance(unit, Function) and unit.owner is not None and is_own and unit.positional:
        assert isinstance(target, ast.Attribute)
        assert isinstance(target.value, ast.Name)
        if target.value.id == unit.positional[0].arg:
            return ast.walk(unit.owner.node)
    return facts.own(unit)
