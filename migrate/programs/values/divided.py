"""What a number of a training loop is divided by: whether its shares are joined by their sum or by their mean.

By the mean, where a process divides by how many batches it saw itself, or where each takes as many as one alone. Where
it divides by what one process would see, the shares are added up.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import walk
from migrate.programs.values.lengths import COUNTING, measured
from migrate.programs.values.rounds import are_alike
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


class Joined(Enum):
    """How the shares become the whole."""

    SUM = "sum"
    MEAN = "mean"
    LIST = "list"
    STEPS = "steps"  # a list with an entry of each step, in the order of the steps
    MEANS = "means"  # a list, entry by entry


#: How lists are.
OF_LISTS = frozenset({Joined.LIST, Joined.STEPS, Joined.MEANS})


@dataclass(frozen=True, slots=True)
class Division:
    """How shares are joined, and the lengths of loaders that alone say so: before prepare these are of all data."""

    joined: Joined
    lengths: tuple[ast.Call, ...] = ()


def division(
    facts: Facts, loop: LoopFact, anchor: ast.stmt, divisors: Iterable[ast.expr], counted: Collection[str]
) -> Division:
    """How the shares of a number are joined behind `anchor`; `counted` are the names that the loop counts up."""
    divisors = tuple(divisors)
    if are_alike(facts, loop.node, anchor) or any(counts_batches(facts, loop, each, counted) for each in divisors):
        return Division(Joined.MEAN)
    lengths = tuple(dict.fromkeys(length for each in divisors for length in lengths_of(facts, each)))
    return Division(Joined.MEAN if lengths else Joined.SUM, lengths)


def counts_batches(facts: Facts, loop: LoopFact, divisor: ast.expr, counted: Collection[str]) -> bool:
    """Whether a divisor is counted in the loop: `steps += 1`, or the number of the batch."""
    counters = {*counted, *numbers_of_batches(facts, loop)}
    places = (node for node in walk(divisor) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)))
    return any(ast.unparse(node) in counters for node in places)


def numbers_of_batches(facts: Facts, loop: LoopFact) -> set[str]:
    """`i` of `for i, batch in enumerate(loader)`."""
    if not isinstance(loop.node, (ast.For, ast.AsyncFor)):
        return set()
    names = (node for node in walk(loop.node.target) if isinstance(node, ast.Name))
    return {node.id for node in names if Role.NUMBER in roles(facts.values(node))}


def lengths_of(facts: Facts, divisor: ast.expr) -> Iterator[ast.Call]:
    """The lengths of loaders that a divisor is made of: `steps` of `steps = min(len(one), len(other))`."""
    sources = facts.once(Sources)
    waiting, seen = [divisor], {divisor}
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and measured(facts, node):
            yield node
        behind = [*_parts(facts, node), *sources.given(node).expressions]
        waiting += [each for each in behind if each not in seen]
        seen.update(behind)


def _parts(facts: Facts, node: ast.expr) -> Iterator[ast.expr]:
    """What a number is computed from by arithmetic."""
    match node:
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.UnaryOp(operand=operand):
            yield operand
        case ast.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)
        case ast.Call(args=given) if facts.called(node) & COUNTING:
            yield from given
