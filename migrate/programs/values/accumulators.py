"""Numbers that a training loop adds up and that are read after it: each process has its share of them.

`loss_sum += loss.item()` … `print(loss_sum / len(data_set))`. After the loop the shares are joined: by their sum, or by
their mean where the number is divided by how many batches *this process* saw, or each process takes as many as one.
What is read inside the loop (progress bars) stays that of one process, which the report says.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, Values, roles
from migrate.analysis.syntax import DEFINITIONS, reads, rounds, runs_after, walk, writes
from migrate.analysis.units import Function
from migrate.programs.values.additions import additions, counted, grown, multiplies
from migrate.programs.values.afresh import is_afresh
from migrate.programs.values.begins import begins_before
from migrate.programs.values.below import is_handed, is_handed_on, set_below, sharing
from migrate.programs.values.divided import Division, Joined, division
from migrate.programs.values.kept import divisors_of, is_adding, is_read
from migrate.programs.values.made_anew import MadeAnew
from migrate.programs.values.new_lists import is_new_list
from migrate.programs.values.numbers import is_foreign, is_number
from migrate.programs.values.of_all import goes_to_all, is_of_all
from migrate.programs.values.scalars import Scalars

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.programs.loops import LoopFact

_DEEPEST = 3  # calls between a loop and what has made the dictionary that it is handed


@dataclass(frozen=True, slots=True)
class Accumulator:
    """A name that a training loop adds up, or a list that it fills."""

    name: str  # as it is written; an attribute or an item, too: `self.total`, `log['loss']`
    loop: LoopFact
    after: ast.stmt  # the loop, or the outer one over which it goes on growing: where the shares are joined
    is_number: bool | None  # a Python number, a tensor (False), or not known (None)
    joined: Joined | None  # None: it is not read after the loop
    read_inside: bool
    grows: bool | None = None  # with the batch, what is added; False: it is a mean over the batch
    is_numeric: bool = False  # a number, a tensor or an array of NumPy, whichever it is
    lengths: tuple[ast.Call, ...] = ()  # of loaders, by which it is divided: what a mean rests on
    is_dictionary: bool = False  # whose items are such numbers, under keys that are not written out


def accumulators(facts: Facts, loop: LoopFact) -> Iterator[Accumulator]:
    """The names, attributes and items that a loop itself adds up from its batches."""
    sums = grown(facts, loop)
    carried = [name for name, summands in sums.items() if not _is_of_step(facts, loop, name, summands)]
    for name, summands in sums.items():
        if is_list(facts, loop, name) or any(not additions(each) for each in set_below(facts, loop.node, name)):
            continue
        if any(multiplies(facts, each, carried) for each in summands):
            continue
        numbers = {is_number(facts, addition) for addition in summands}
        if numbers == {True} and _begins_as_tensor(facts, loop, name):
            numbers = {False}
        anchor = set_up_before(facts, loop, name)
        if not name.isidentifier():
            for kept in _kept(facts, loop, name, anchor, numbers, summands):
                yield replace(kept, grows=grows(facts, loop, summands))
        elif anchor is not None:  # else it begins in each step, or elsewhere
            number = numbers.pop() if len(numbers) == 1 else None
            divided = _divided(facts, loop, name, anchor, summands)
            joined, lengths = (divided.joined, divided.lengths) if divided is not None else (None, ())
            inside, growing = _is_read_inside(facts, anchor, name), grows(facts, loop, summands)
            is_numeric = _begins_as_number(facts, loop, name) and not any(map(partial(is_foreign, facts), summands))
            yield Accumulator(name, loop, anchor, number, joined, inside, growing, is_numeric, lengths)


def _is_of_step(facts: Facts, loop: LoopFact, name: str, summands: Sequence[ast.expr]) -> bool:
    """Whether a name is added to within a step alone, which begins it: `loss = loss + weight * penalty`."""
    tree = facts.tree(loop.node)
    return name.isidentifier() and all(
        facts.unit(each) is loop.unit and is_afresh(tree, tree.statement(each), name, loop.node) for each in summands
    )


def is_read_later(later: Sequence[ast.stmt], name: str) -> bool:
    """Whether statements read a name before they give it another value."""
    for statement in later:
        if name in reads(statement):
            return True
        if name in writes(statement):
            return False
    return False


def grows(facts: Facts, loop: LoopFact, additions: Sequence[ast.expr]) -> bool | None:
    """Whether what is added grows with the batch; None: not known."""
    scalars = Scalars(facts, loop)
    if all(scalars.is_mean(addition) for addition in additions):
        return False
    return True if all(scalars.is_sum(addition) for addition in additions) else None


def _kept(
    facts: Facts,
    loop: LoopFact,
    name: str,
    anchor: ast.stmt | None,
    numbers: set[bool | None],
    additions: Sequence[ast.expr],
) -> Iterator[Accumulator]:
    """An attribute or an item, if it begins anew before the loop, which alone adds to it, and is read after it."""
    if anchor is not loop.node or len(numbers) > 1 or None in numbers:
        return
    around, parents = list(walk(facts.tree(loop.node).root)), facts.tree(loop.node).parents
    within = {id(node) for node in (*rounds(loop.node), *sharing(facts, loop.node, name))}
    after = (*statements_after(facts, anchor), *_after_calls(facts, anchor, name))
    later = [node for statement in after for node in walk(statement)]
    if any(id(node) not in within and is_read(parents, node, name) for node in (later if "[" in name else around)):
        divided = [*divisors_of(later if "[" in name else around, name), *by_callers(facts, loop, name)]
        divided += divided_already(additions)
        how = division(facts, loop, anchor, divided, set(counted(facts, loop.node)))
        reading = (node for node in around if id(node) in within and is_read(parents, node, name))
        inside = not all(is_handed_on(facts, loop.node, node, name) for node in reading)
        yield Accumulator(name, loop, anchor, numbers.pop(), how.joined, inside, lengths=how.lengths)


def is_list(facts: Facts, loop: LoopFact, name: str) -> bool:
    """Whether a name begins as a list: `found += out.tolist()` adds no numbers up."""
    made = {v.origin for each in facts.bindings_in(loop.unit) if each.target == name for v in each.values}
    return any(is_new_list(facts, origin) for origin in made)


def _begins_as_tensor(facts: Facts, loop: LoopFact, name: str) -> bool:
    """Whether numbers are added to a tensor, or to an element of one: `total = torch.zeros(2)`."""
    return Role.TENSOR in roles(last_before(facts, loop, name.partition("[")[0]))


def _begins_as_number(facts: Facts, loop: LoopFact, name: str) -> bool:
    return roles(last_before(facts, loop, name)) == {Role.NUMBER}


def last_before(facts: Facts, loop: LoopFact, name: str) -> Values:
    """What a name was given last before a loop."""
    last = last_binding(facts, loop, name)
    return last.values if last is not None else frozenset()


def last_binding(facts: Facts, loop: LoopFact, name: str) -> Binding | None:
    """Where a name was given its last value before a loop."""
    before = [b for b in facts.bindings_in(loop.unit) if b.target == name and b.statement.lineno < loop.node.lineno]
    return max(before, key=lambda b: b.statement.lineno, default=None)


def set_up_before(facts: Facts, loop: LoopFact, name: str) -> ast.stmt | None:
    """The statement around the loop before which a name gets its first value, and which runs for several batches."""
    anchor = begins_before(facts, loop.node, name)
    return None if anchor is None or _is_in_step(facts, loop, anchor) else anchor


def _is_in_step(facts: Facts, loop: LoopFact, anchor: ast.stmt) -> bool:
    """Whether a statement is run for one batch: in a loop over a loader, around one that goes on with its batch."""
    around = [node for node in facts.tree(anchor).loops(anchor) if node is not loop.node]
    return not _deals(facts, loop, loop.node) and any(_deals(facts, loop, node) for node in around)


def _deals(facts: Facts, loop: LoopFact, node: ast.AST) -> bool:
    """`for x, y in loader:`, of one of the loaders of a training loop."""
    target = node.target if isinstance(node, (ast.For, ast.AsyncFor)) else None
    names = [n for n in walk(target) if isinstance(n, (ast.Name, ast.Attribute))] if target is not None else []
    return any(is_own(facts, loop, each) for each in names)


def statements_after(facts: Facts, anchor: ast.stmt) -> list[ast.stmt]:
    """The statements that follow a statement in its function."""
    tree = facts.tree(anchor)
    inner = anchor
    found = [*runs_after(anchor)]
    while True:
        block = tree.block(inner)
        position = next(i for i, statement in enumerate(block) if statement is inner)
        found += block[position + 1 :]
        parent = tree.parents[inner]
        if not isinstance(parent, ast.stmt) or isinstance(parent, DEFINITIONS):
            return found
        rest = runs_after(parent)
        found += rest if block is not rest else []
        inner = parent


def _after_calls(facts: Facts, node: ast.AST, name: str, depth: int = _DEEPEST) -> Iterator[ast.stmt]:
    """The statements that follow the calls of a function which hand over what a place of it is in, under its name."""
    unit = facts.unit(node)
    for call in facts.callers(unit) if isinstance(unit, Function) and depth > 0 else ():
        if is_handed(facts, call.node, unit, name):
            yield from statements_after(facts, facts.tree(call.node).statement(call.node))
            yield from _after_calls(facts, call.node, name, depth - 1)


def is_own(facts: Facts, loop: LoopFact, node: ast.expr) -> bool:
    """Whether an expression holds something of the batches of one process."""
    values = facts.values(node)
    found = any(value.role in FROM_LOADER and value.origin in loop.loaders for value in values)
    if not found and any(value.role is Role.TENSOR for value in values):
        found = facts.once(MadeAnew).gave(loop, values)
    return found and not is_of_all(facts, node)


def holds_own(facts: Facts, loop: LoopFact, node: ast.AST) -> bool:
    """Whether any part of some code holds something of the batches of one process."""
    return any(is_own(facts, loop, inner) for inner in walk(node) if isinstance(inner, ast.expr))


def _divided(
    facts: Facts, loop: LoopFact, name: str, anchor: ast.stmt, additions: Sequence[ast.expr]
) -> Division | None:
    """How the shares of a name are joined; None: it is not read after the loop."""
    divisors: list[ast.expr] = []
    is_read = False
    for statement in statements_after(facts, anchor):
        if name in reads(statement):
            is_read = True
            divisors += _divisors(statement, name)
        if isinstance(statement, ast.Assign) and name in writes(statement):
            break
    if not is_read:
        return None
    divisors += [*by_callers(facts, loop, name), *divided_already(additions)]
    return division(facts, loop, anchor, divisors, set(counted(facts, loop.node)))


def divided_already(additions: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """What is divided by before it is added: `total += loss.item() / len(loader)`, `mean += (x - mean) / steps`."""
    for node in (node for addition in additions for node in walk(addition)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield node.right


def by_callers(facts: Facts, loop: LoopFact, name: str) -> Iterator[ast.expr]:
    """What callers divide a number by that the function of the loop returns as it is."""
    base, _, item = name.partition("[")
    if not isinstance(loop.unit, Function):
        return
    given = [n.value for n in facts.own(loop.unit) if isinstance(n, ast.Return) and n.value is not None]
    for value in given:
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        for position, part in enumerate(parts):
            if ast.unparse(part) not in (base, name):
                continue
            behind = f"[{item}" if item and ast.unparse(part) == base else ""
            for caller in facts.callers(loop.unit):
                yield from _divided_there(facts, caller.node, position if len(parts) > 1 else None, behind)


def _divided_there(facts: Facts, call: ast.AST, position: int | None, behind: str) -> Iterator[ast.expr]:
    """What a caller divides the result of a call by, or a part of it, or an item."""
    above = facts.tree(call).parents[call]
    if isinstance(above, ast.BinOp) and isinstance(above.op, ast.Div) and above.left is call and position is None:
        yield above.right
    target = above.targets[0] if isinstance(above, ast.Assign) and above.value is call else None
    if isinstance(target, ast.Tuple) and position is not None and position < len(target.elts):
        target = target.elts[position]
    if target is not None and isinstance(above, ast.Assign):
        name = f"{ast.unparse(target)}{behind}"
        later = [node for statement in statements_after(facts, above) for node in walk(statement)]
        yield from divisors_of(later, name)


def _divisors(statement: ast.stmt, name: str) -> Iterator[ast.expr]:
    for node in walk(statement):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and name in reads(node.left):
            yield node.right
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            if isinstance(node.target, ast.Name) and node.target.id == name:
                yield node.value


def _is_read_inside(facts: Facts, anchor: ast.stmt, name: str) -> bool:
    """Whether the name is read before the shares are joined, other than to add to it, or to sum it up there."""
    adding = (n.value for n in walk(anchor) if isinstance(n, ast.Assign) and additions(n))
    sums = (part for value in adding for part in (value.elts if isinstance(value, ast.Tuple) else [value]))
    added_to = {id(part.left) for part in sums if isinstance(part, ast.BinOp)}
    added_to |= {id(node.value) for node in walk(anchor).of(ast.Attribute) if is_adding(node)}
    return any(
        isinstance(n, ast.Name)
        and n.id == name
        and isinstance(n.ctx, ast.Load)
        and id(n) not in added_to
        and not goes_to_all(facts, n)
        for n in rounds(anchor)
    )
