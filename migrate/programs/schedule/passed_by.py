"""Tests for a certain batch by a count that is made to count those of all processes: it goes on by N, and may pass it.

    step = i * accelerator.num_processes + done + 1
    if step % 100 == 0:    ->    if -step % 100 // accelerator.num_processes == 0:

A step takes the batches from `step` to `step + N - 1`, and one of these is the one that is waited for.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk
from migrate.analysis.units import Function
from migrate.programs.program import Refusal
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_DEEPEST = 2  # calls that a count is handed to
_ASKS_FOR_ONE = (ast.Eq, ast.NotEq, ast.In, ast.NotIn)


def tests_passed_by(facts: Facts, scaled: Sequence[ast.expr]) -> tuple[list[ast.BinOp], list[Refusal]]:
    """The `step % 100` of tests for a turn, and refusals of others, by sums that multiplied counts are put into."""
    asked: dict[ast.expr, Unit] = {}
    for carrier in scaled:
        statement = facts.tree(carrier).statement(carrier)
        if isinstance(statement, ast.Assign) and statement.value is not carrier:
            for target in statement.targets:
                asked |= dict.fromkeys(_asking(facts, facts.unit(carrier), ast.unparse(target)), facts.unit(carrier))
    own = {facts.unit(carrier) for carrier in scaled}
    turns = [turn for test in asked if (turn := _turn(test)) is not None and facts.unit(test) in own]
    return turns, [_refusal(test) for test in asked if _turn(test) not in turns]


def _turn(test: ast.expr) -> ast.BinOp | None:
    """`step % 100` of `step % 100 == 0`."""
    match test:
        case ast.Compare(left=ast.BinOp(op=ast.Mod()) as turn, ops=[ast.Eq()], comparators=[ast.Constant(value=0)]):
            return turn
    return None


def _refusal(test: ast.expr) -> Refusal:
    why = (
        f"`{ast.unparse(test)}` waits for a certain batch by a count that a learning rate goes by, too: on N processes "
        "that goes on by N at each step, and may pass it"
    )
    return Refusal(
        test, "MIG118", why, "ask by a count of the steps alone, or by `count % every == 0` beside the count"
    )


def _asking(facts: Facts, unit: Unit, target: str, depth: int = _DEEPEST) -> Iterator[ast.expr]:
    """The tests in a function that only some values of a name pass, and those in functions that are handed it."""
    for node in facts.own(unit):
        if isinstance(node, ast.Compare) and any(isinstance(op, _ASKS_FOR_ONE) for op in node.ops):
            if any(_reads(side, target) for side in (node.left, *node.comparators)):
                yield node
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _reads(node.left, target):
            if not isinstance(facts.tree(node).parents[node], (ast.Compare, ast.BinOp, ast.Assign)):
                yield node
        elif isinstance(node, ast.Call) and depth:
            for callee, name in _handed(facts, node, target):
                yield from _asking(facts, callee, name, depth - 1)


def _handed(facts: Facts, call: ast.Call, target: str) -> Iterator[tuple[Function, str]]:
    """The functions that a call enters, with their parameters that are given just that name."""
    given = {id(part) for part in (*call.args, *(keyword.value for keyword in call.keywords)) if _is(part, target)}
    for callee in facts.targets(call) if given else ():
        for name in callee.parameter_names:
            if any(id(each) in given for each in facts.once(Sources).argument(callee, name).expressions):
                yield callee, name


def _reads(node: ast.expr, target: str) -> bool:
    return any(_is(inner, target) for inner in walk(node))


def _is(node: ast.AST, target: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == target
