"""Dictionaries of sums whose keys are not written out: `for name, value in losses.items(): sums[name] += value.item()`.

As a single number, such a dictionary is joined behind the loop: by the sum of the shares of each item, or by their mean
where the items are divided by how many batches a process saw. Every process must have the same keys: they may differ
where a batch says which they are.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_stored, rounds, same, walk
from migrate.programs.values.accumulators import (
    Accumulator,
    by_callers,
    divided_already,
    grows,
    holds_own,
    is_read_later,
    set_up_before,
    statements_after,
)
from migrate.programs.values.additions import counted, holds_numbers
from migrate.programs.values.divided import Division, Joined, division
from migrate.programs.values.kept import divisors_of, is_place, sets, taken_from, uses
from migrate.programs.values.keys import is_everywhere
from migrate.programs.values.numbers import is_number, is_zero
from migrate.programs.values.sources import called_by_name, given_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact

_DICTIONARIES = frozenset(f"collections.{name}" for name in ("defaultdict", "OrderedDict", "Counter")) | {
    "builtins.dict"
}
_ZEROS = frozenset({"builtins.float", "builtins.int"})  # what `defaultdict(float)` begins with
_READING = frozenset("items values keys get".split())
_READERS = frozenset({"builtins.zip", "builtins.len"})


@dataclass(frozen=True, slots=True)
class _Addition:
    """`sums[key] += value`."""

    statement: ast.stmt
    item: ast.Subscript
    value: ast.expr


def dictionaries(facts: Facts, loop: LoopFact) -> Iterator[Accumulator]:
    """The dictionaries that a loop finds empty or full of zeros, and does no more with than add to their items."""
    for name, additions in _added(loop).items():
        if all(isinstance(each.item.slice, ast.Constant) for each in additions):
            continue  # each item is a place of its own
        found = _Dictionary(facts, loop, name, tuple(additions))
        if found.is_summed and found.is_read and (how := found.division()) is not None:
            yield found.accumulator(how)


def _added(loop: LoopFact) -> dict[str, list[_Addition]]:
    """What is added to items of each name or attribute: `d[k] += x`, `d[k] = d[k] + x`, `d[k] = d.get(k, 0) + x`."""
    found: dict[str, list[_Addition]] = {}
    for node in rounds(loop.node):
        match node:
            case ast.AugAssign(op=ast.Add(), target=ast.Subscript() as item, value=value):
                pass
            case ast.Assign(
                targets=[ast.Subscript() as item], value=ast.BinOp(op=ast.Add(), left=left, right=value)
            ) if same(item, left) or _is_got(left, item):
                pass
            case _:
                continue
        if isinstance(item.value, (ast.Name, ast.Attribute)) and is_place(item.value):
            found.setdefault(ast.unparse(item.value), []).append(_Addition(node, item, value))
    return found


def _is_got(node: ast.expr, item: ast.Subscript) -> bool:
    """`sums.get(key, 0)`, beside `sums[key]`."""
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr="get"), args=[key, ast.Constant(value=0)]):
            return same(base, item.value) and same(key, item.slice)
    return False


@dataclass(frozen=True, slots=True)
class _Dictionary:
    """A name or an attribute to whose items a loop adds."""

    facts: Facts
    loop: LoopFact
    name: str
    additions: tuple[_Addition, ...]

    def accumulator(self, how: Division) -> Accumulator:
        values = [each.value for each in self.additions]
        numbers = {is_number(self.facts, value) for value in values}
        parents = self.facts.tree(self.loop.node).parents
        adding = {node for each in self.additions for node in walk(each.statement)}
        reading = (parents[use] for use in uses(self.loop.node, self.name) if use not in adding)
        return Accumulator(
            self.name,
            self.loop,
            self.loop.node,
            is_number=numbers.pop() if len(numbers) == 1 else None,
            joined=how.joined,
            read_inside=not all(_is_stored_item(each) or self._gives_keys(each) for each in reading),
            grows=grows(self.facts, self.loop, values),
            lengths=how.lengths,
            is_dictionary=True,
        )

    def _gives_keys(self, reading: ast.AST) -> bool:
        """`key in sums`, `zip(sums, losses)`: the numbers are not asked for."""
        is_call = isinstance(reading, ast.Call) and bool(called_by_name(self.facts, reading) & _READERS)
        return is_call or isinstance(reading, ast.Compare)

    @property
    def is_summed(self) -> bool:
        """Whether it holds sums of the loop alone, under keys that every process has."""
        facts, loop = self.facts, self.loop
        if not any(holds_numbers(facts, each.value) for each in self.additions):
            return False
        if set_up_before(facts, loop, self.name) is not loop.node or not self._begins_with_zeros():
            return False
        parents = facts.tree(loop.node).parents
        items = {each.item for each in self.additions}
        return not any(map(self._may_differ, self.additions)) and all(
            _is_plain(facts, parents, use, items) for use in uses(loop.node, self.name)
        )

    def _may_differ(self, addition: _Addition) -> bool:
        """Whether a batch says to which item something is added, or whether it is."""
        facts, loop = self.facts, self.loop
        if not is_everywhere(facts, loop, addition.item.slice):
            return True
        inner: ast.AST = addition.statement
        while inner is not loop.node:
            inner = facts.tree(loop.node).parents[inner]
            if isinstance(inner, (ast.If, ast.While)) and not _asks_for_key(inner.test, addition.item.value):
                if holds_own(facts, loop, inner.test):
                    return True
        return False

    def _begins_with_zeros(self) -> bool:
        """Whether nothing is in it before the loop in its block, or zeros are; an attribute gets items nowhere else."""
        tree = self.facts.tree(self.loop.node)
        block = tree.block(self.loop.node)
        begun = [each for each in block[: block.index(self.loop.node)] if any(uses(each, self.name))]
        first = max((number for number, each in enumerate(begun) if _sets(each, self.name)), default=None)
        if first is None:
            return False
        made, *others = begun[first:]
        assert isinstance(made, (ast.Assign, ast.AnnAssign))
        known = {use for each in (self.loop.node, *others) for use in uses(each, self.name)}
        elsewhere = self._everywhere() if "." in self.name else ()
        return (
            _is_zeros(self.facts, given_by(made, self.name))
            and all(_puts_zeros(each, self.name) for each in others)
            and not any(_is_stored_item(tree.parents[use]) for use in elsewhere if use not in known)
        )

    def _everywhere(self) -> Iterator[ast.expr]:
        return uses(self.facts.tree(self.loop.node).root, self.name)

    @property
    def is_read(self) -> bool:
        """Whether code behind the loop asks for it; for an attribute, any code of the file."""
        if "." not in self.name:
            return is_read_later(statements_after(self.facts, self.loop.node), self.name)
        inside = {*uses(self.loop.node, self.name)}
        return any(not is_stored(use) and use not in inside for use in self._everywhere())

    def division(self) -> Division | None:
        """How the shares are joined; None: by counts of which it is not known whether those of all are alike."""
        facts, loop, items = self.facts, self.loop, f"{self.name}[*]"
        later = [node for statement in statements_after(facts, loop.node) for node in walk(statement)]
        if "." in self.name:
            later = list(walk(facts.tree(loop.node).root))
        divisors = [*divisors_of(later, self.name), *divisors_of(later, items)]
        divisors += [*by_callers(facts, loop, self.name), *by_callers(facts, loop, items)]
        divisors += divided_already([each.value for each in self.additions])
        places = set(counted(facts, loop.node))
        counts = {place.partition("[")[0] for place in places if "[" in place}
        met = [base for base in counts if _is_met(divisors, base, later)]
        if not met:
            return division(facts, loop, loop.node, divisors, places)
        return Division(Joined.MEAN) if all(map(self._goes_up_with, met)) else None

    def _goes_up_with(self, counts: str) -> bool:
        """Whether a dictionary of counts goes up beside each addition: `sums[key] += x`, `counts[key] += 1`."""
        tree = self.facts.tree(self.loop.node)
        return all(
            any(
                isinstance(beside, ast.AugAssign)
                and isinstance(beside.target, ast.Subscript)
                and isinstance(beside.value, ast.Constant)
                and ast.unparse(beside.target.value) == counts
                and same(beside.target.slice, each.item.slice)
                for beside in tree.block(each.statement)
            )
            for each in self.additions
        )


def _is_met(divisors: Sequence[ast.expr], base: str, later: Sequence[ast.AST]) -> bool:
    """Whether one of some divisors is a dictionary's item, or taken from it."""
    taken = taken_from(later, base)
    parts = (node for each in divisors for node in walk(each) if isinstance(node, (ast.Name, ast.Attribute)))
    return any(ast.unparse(node) in {base, *taken} for node in parts)


def _is_stored_item(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and is_stored(node)


def _asks_for_key(test: ast.expr, dictionary: ast.expr) -> bool:
    """`key in sums`, `key not in sums`."""
    match test:
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[base]):
            return same(base, dictionary)
    return False


def _sets(statement: ast.stmt, name: str) -> bool:
    return isinstance(statement, (ast.Assign, ast.AnnAssign)) and sets(statement, name)


def _puts_zeros(statement: ast.stmt, name: str) -> bool:
    """`for key in keys: sums[key] = 0`."""
    puts = {node.targets[0] for node in walk(statement) if isinstance(node, ast.Assign) and is_zero(node.value)}
    items = {node for node in walk(statement) if isinstance(node, ast.Subscript) and node in puts}
    return all(any(use is item.value for item in items) for use in uses(statement, name))


def _is_zeros(facts: Facts, made: ast.expr | None) -> bool:
    match made:
        case ast.Dict(values=values):
            return all(map(is_zero, values))
        case ast.DictComp(value=value):
            return is_zero(value)
        case ast.Call(func=ast.Attribute(attr="fromkeys"), args=[_, value]):
            return is_zero(value)
        case ast.Call(args=[], keywords=[]):
            return bool(facts.called(made) & _DICTIONARIES)
        case ast.Call(args=[ast.Lambda(body=value)], keywords=[]):
            return "collections.defaultdict" in facts.called(made) and is_zero(value)
        case ast.Call(args=[ast.Name() as factory], keywords=[]):
            return "collections.defaultdict" in facts.called(made) and bool(facts.names(factory) & _ZEROS)
    return False


def _is_plain(facts: Facts, parents: Mapping[ast.AST, ast.AST], use: ast.expr, added: set[ast.Subscript]) -> bool:
    """Whether a use of a dictionary adds to an item, reads it, or makes an item that is not there yet a zero."""
    match parents[use]:
        case ast.Subscript(ctx=ast.Load()) | ast.Compare(ops=[ast.In() | ast.NotIn()]):
            return True
        case ast.Subscript(ctx=ast.Store()) as item:
            above = parents[item]
            return item in added or (isinstance(above, ast.Assign) and _is_first(parents, above))
        case ast.Attribute(attr=attr) as method:
            call = parents[method]
            if attr == "setdefault" and isinstance(call, ast.Call):
                return len(call.args) == 2 and is_zero(call.args[1])
            return attr in _READING
        case ast.For(iter=over):
            return over is use
        case ast.Call(args=given) as call:
            return use in given and bool(called_by_name(facts, call) & _READERS)
    return False


def _is_first(parents: Mapping[ast.AST, ast.AST], given: ast.Assign) -> bool:
    """`if key not in sums: sums[key] = 0`; `if key in sums: ... else: sums[key] = value`."""
    match parents[given]:
        case ast.If(test=ast.Compare(left=key, ops=[ast.NotIn()], comparators=[base]), body=block):
            pass
        case ast.If(test=ast.Compare(left=key, ops=[ast.In()], comparators=[base]), orelse=block):
            pass
        case _:
            return False
    item = given.targets[0]
    return given in block and isinstance(item, ast.Subscript) and same(key, item.slice) and same(base, item.value)
