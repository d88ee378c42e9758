"""Numbers that the steps of a training loop leave behind, and that are read after it.

    print("epoch", epoch, "loss", loss.item())          the loss of the last batch
    smooth = 0.9 * smooth + 0.1 * loss.item()           a moving average, read after the loop
    losses.append(loss)                                 a list, of one loss for each step (`collected.py`)

Of means over the shares of a batch the mean is that of the batch, and so it is of all that is added up of such means
with the same weights everywhere. What is no mean (a count, a perplexity, the least of all) stays as it is.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import blocks, reads, rounds, walk, writes
from migrate.programs.shares.averages import Average, Joint
from migrate.programs.shares.collected import Collected
from migrate.programs.values.accumulators import holds_own, statements_after
from migrate.programs.values.additions import additions
from migrate.programs.values.below import set_below
from migrate.programs.values.kept import is_place
from migrate.programs.values.lists import is_met
from migrate.programs.values.scalars import Scalar, Scalars, one

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact

_PLAIN = (ast.Assign, ast.AugAssign)
#: What is read of a tensor of one element where its number is asked for, and not its gradient.
_NUMBER_OF = frozenset({"item", "detach", "data", "cpu", "tolist"})
_SHOWS = frozenset({"builtins.print", "builtins.float", "builtins.str", "builtins.format"})


def last_numbers(facts: Facts, loop: LoopFact, names: Iterable[str]) -> Iterator[Average]:
    """Those of some names of a loop's function whose mean over the processes says what one process said."""
    scalars, collected = Scalars(facts, loop), Collected(facts, loop)
    for name in names if not loop.node.orelse else ():
        if collected.has(name):
            yield from collected.average(name)
            continue
        given = _given(facts, loop, name)
        if not name.isidentifier() and any(map(additions, given)):
            continue  # who reads it may divide by how many there are
        kind = _kind(scalars, name, given)
        if kind not in (Scalar.FLOAT, Scalar.TENSOR) or not _is_set(facts, loop, name, given):
            continue
        if not all(is_met(facts, loop, each.value) and _is_mean(facts, scalars, loop, each, name) for each in given):
            continue
        if kind is Scalar.FLOAT or all(_asks_number(facts, read) for read in _read(facts, loop, name)):
            yield Average(loop.node, name, Joint.MEAN, kind is Scalar.TENSOR)


def _kind(scalars: Scalars, name: str, given: list[ast.Assign | ast.AugAssign]) -> Scalar | None:
    """What holds the number: a loss is a tensor, also of the program's own criterion."""
    if len(given) == 1 and scalars.is_loss(name, given[0].value):
        return Scalar.TENSOR
    return one(scalars.grown(each.value, name) for each in given)


def _given(facts: Facts, loop: LoopFact, name: str) -> list[ast.Assign | ast.AugAssign]:
    """What gives a name its values in a loop; nothing where one of them is more than a plain assignment."""
    inside = set(rounds(loop.node))
    found = [b.statement for b in facts.bindings_in(loop.unit) if b.target == name and b.statement in inside]
    plain = [each for each in found if isinstance(each, _PLAIN)]
    is_all = len(plain) == len(found) and (name.isidentifier() or not set_below(facts, loop.node, name))
    return plain if is_all else []


def _is_set(facts: Facts, loop: LoopFact, name: str, given: Collection[ast.stmt]) -> bool:
    """Whether a name has such a number after the loop: each step gives it one, or else the program fails there."""
    if any(each in loop.node.body for each in given):
        return True
    for statement in statements_after(facts, loop.node):
        if any(True for _ in blocks(statement)) or name in writes(statement):
            return False
        if name in reads(statement):
            return len([each for each in facts.bindings_in(loop.unit) if each.target == name]) == len(given)
    return False


def _is_mean(facts: Facts, scalars: Scalars, loop: LoopFact, statement: ast.Assign | ast.AugAssign, name: str) -> bool:
    """Whether what a name is given is a mean of the batch, or the same sum of the name itself and of means."""
    if isinstance(statement, ast.Assign):
        is_whole = all(map(is_place, statement.targets))
        is_loss = not _asks(statement.value, name) and scalars.is_loss(name, statement.value)
        return is_whole and (is_loss or _is_linear(facts, scalars, loop, statement.value, name))
    if isinstance(statement.op, (ast.Add, ast.Sub)):
        return _is_linear(facts, scalars, loop, statement.value, name)
    return isinstance(statement.op, (ast.Mult, ast.Div)) and _is_same(facts, loop, statement.value, name)


def _is_linear(facts: Facts, scalars: Scalars, loop: LoopFact, value: ast.expr, name: str) -> bool:
    def linear(node: ast.expr) -> bool:
        return _is_linear(facts, scalars, loop, node, name)

    if not holds_own(facts, loop, value) and not _asks(value, name):
        return True
    match value:
        case ast.Name() | ast.Attribute() | ast.Subscript():
            return ast.unparse(value) == name or scalars.is_mean(value)
        case ast.IfExp(test, body, orelse):
            return _is_same(facts, loop, test, name) and linear(body) and linear(orelse)
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            return linear(left) and linear(right)
        case ast.BinOp(left, ast.Mult(), right):
            return (_is_same(facts, loop, left, name) and linear(right)) or (
                _is_same(facts, loop, right, name) and linear(left)
            )
        case ast.BinOp(left, ast.Div(), right):
            return linear(left) and _is_same(facts, loop, right, name)
    return not _asks(value, name) and scalars.is_mean(value)


def _is_same(facts: Facts, loop: LoopFact, node: ast.expr, name: str) -> bool:
    """Whether an expression is the same on all processes: of the name itself whether it is there alone."""
    if isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
        return True
    return not holds_own(facts, loop, node) and not _asks(node, name)


def _asks(node: ast.expr, name: str) -> bool:
    """Whether an expression reads what is called so."""
    places = (inner for inner in walk(node) if isinstance(inner, (ast.Name, ast.Attribute, ast.Subscript)))
    return any(ast.unparse(place) == name for place in places)


def _read(facts: Facts, loop: LoopFact, name: str) -> list[ast.Name]:
    """Where a name is read in the function of a loop, and not in the loop."""
    inside = set(rounds(loop.node))
    nodes = (node for node in facts.own(loop.unit) if node not in inside)
    return [node for node in nodes if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)]


def _asks_number(facts: Facts, node: ast.Name) -> bool:
    """Whether a tensor is read for its number: nobody goes back through it, nor keeps it."""
    above = facts.tree(node).parents[node]
    if isinstance(above, ast.Attribute):
        return above.attr in _NUMBER_OF
    if isinstance(above, ast.Call):
        is_text = isinstance(above.func, ast.Attribute) and above.func.attr == "format"
        return node in above.args and (is_text or bool(facts.called(above) & _SHOWS))
    return isinstance(above, ast.FormattedValue)
