"""Lists that a training loop fills and that are read after it: of all processes they are one list, or one of means.

losses.append(loss.item())      losses += [loss.item()]     labels.extend(y.tolist())
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import TRIES, rounds, walk
from migrate.analysis.units import Function
from migrate.programs.values.accumulators import (
    Accumulator,
    by_callers,
    grows,
    holds_own,
    is_list,
    is_own,
    is_read_later,
    last_before,
    set_up_before,
    statements_after,
)
from migrate.programs.values.additions import counted
from migrate.programs.values.below import below, is_handed_on, sharing
from migrate.programs.values.divided import Division, Joined, division, numbers_of_batches
from migrate.programs.values.kept import is_only_read, is_place, sets
from migrate.programs.values.lengths import measured
from migrate.programs.values.new_lists import is_empty_list
from migrate.programs.values.numbers import is_number
from migrate.programs.values.scalars import Scalars
from migrate.programs.values.together import goes_by_order, is_cut, only_divided, quotients, together

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.programs.loops import LoopFact

_TESTED = (ast.If, ast.While, ast.IfExp)
_DEEPEST = 4  # calls between a loop and what is put into a list


def lists(facts: Facts, loop: LoopFact) -> Iterator[Accumulator]:
    """`losses = []` right before the loop, `losses.append(<number>)` in it, read after it.

    Inside of the loop it is only computed with. A list that goes on over several loops would be joined in the order of
    the processes, not of time: it is left. So is one beside which code goes through another that is left, or through
    what numbers the steps of one process: `zip(steps, losses)`. Lists with an entry of each step are put together in
    the order of the steps where something goes by it: `plt.plot(losses)`, `zip(losses, errors)`.
    """
    every = appended(facts, loop)
    lists = {n: each for n, each in every.items() if any(is_own(facts, loop, v) for v in each)}
    later = statements_after(facts, loop.node)
    names = [name for name in lists if name.isidentifier() and is_read_later(later, name)]
    found = [name for name in names if _can_be_joined(facts, loop, name, lists[name])]
    counts = set(_numbering(facts, loop, later)) if found else set()
    left = together(facts, later, found, every.keys() - set(found), counts) if found else set()
    given = {name: _of_entries(facts, loop, later, name, lists[name]) for name in found if name not in left}
    plain = [name for name, how in given.items() if how is not None and how.joined is Joined.LIST]
    has_steps = all(_has_one_of_each_step(facts, loop, lists[name]) for name in plain)
    for name, how in given.items():
        if how is not None:
            in_order = name in plain and has_steps and goes_by_order(later, name)
            joined = Joined.STEPS if in_order else how.joined
            inside = not is_filled_only(facts, loop, name, lists[name])
            growing = grows(facts, loop, lists[name])
            yield Accumulator(name, loop, loop.node, True, joined, inside, growing, lengths=how.lengths)


def _numbering(facts: Facts, loop: LoopFact, later: Sequence[ast.stmt]) -> Iterator[str]:
    """What says how many steps one process takes: `steps` of `steps += 1`, the number of the batch, `len(loader)`."""
    yield from counted(facts, loop.node)
    yield from numbers_of_batches(facts, loop)
    calls = (node for statement in later for node in walk(statement) if isinstance(node, ast.Call))
    yield from (ast.unparse(call) for call in calls if measured(facts, call) & loop.loaders)


def _of_entries(
    facts: Facts, loop: LoopFact, later: Sequence[ast.stmt], name: str, added: Sequence[ast.expr]
) -> Division | None:
    """How a list is joined: with those of the others, or entry by entry; None: it stays one process's own.

    By how many batches a process saw itself `sum(losses)` is divided where there is an entry for each of them; the
    last entries, `losses[-10:]`, are of the last steps.
    """
    counters, length = set(counted(facts, loop.node)), f"len({name})"
    divisors = [*quotients(facts, later, name), *by_callers(facts, loop, name)]
    each = [division(facts, loop, loop.node, [d], counters) for d in divisors if ast.unparse(d) != length]
    if all(how.joined is Joined.SUM for how in each) and not is_cut(later, name):
        return Division(Joined.LIST)
    is_of_steps = all(not _is_listed(value) and is_met(facts, loop, value) for value in added)
    if not is_of_steps or any(how.joined is Joined.SUM for how in each) or not only_divided(later, name):
        return None
    lengths = () if is_cut(later, name) else tuple(length for how in each for length in how.lengths)
    return Division(Joined.MEANS, lengths)


def _has_one_of_each_step(facts: Facts, loop: LoopFact, added: Sequence[ast.expr]) -> bool:
    """Whether a list has one number of each step, as on every process."""
    first = added[0]
    return len(added) == 1 and is_number(facts, first) is True and not _is_listed(first) and is_met(facts, loop, first)


def _can_be_joined(facts: Facts, loop: LoopFact, name: str, added: Sequence[ast.expr]) -> bool:
    is_empty = _is_empty(facts, last_before(facts, loop, name)) and set_up_before(facts, loop, name) is loop.node
    return (
        is_empty
        and all(_are_numbers(facts, value) for value in added)
        and is_only_read(facts, nodes_of(facts, loop, name), name)
    )


def is_filled_only(facts: Facts, loop: LoopFact, name: str, added: Sequence[ast.expr]) -> bool:
    """Whether a loop does no more with a list than append to it, and finds it empty."""
    reads_inside = sum(isinstance(n, ast.Name) and n.id == name for n in nodes_of(facts, loop, name)) > len(added)
    return not reads_inside and set_up_before(facts, loop, name) is loop.node


def shown(facts: Facts, loop: LoopFact) -> Iterator[str]:
    """Lists that go on over the steps, and whose numbers these show: `bar.set_postfix(loss=np.mean(losses))`."""
    for name, added in appended(facts, loop).items():
        is_share = any(is_own(facts, loop, value) for value in added)
        if not is_share or not all(_is_figure(facts, loop, value) for value in added):
            continue
        asked = [n for n in nodes_of(facts, loop, name) if isinstance(n, ast.expr) and ast.unparse(n) == name]
        is_shown = any(is_asked_for(facts.tree(node).parents, node) for node in asked)
        if is_shown and (set_up_before(facts, loop, name) is not None or not _is_set_inside(loop, name)):
            yield name


def _is_set_inside(loop: LoopFact, name: str) -> bool:
    return any(isinstance(node, (ast.Assign, ast.AnnAssign)) and sets(node, name) for node in rounds(loop.node))


def _is_figure(facts: Facts, loop: LoopFact, node: ast.expr) -> bool:
    return _are_numbers(facts, node) or Scalars(facts, loop).is_mean(node)


def is_asked_for(parents: Mapping[ast.AST, ast.AST], node: ast.expr) -> bool:
    """Whether a number, or those of a list, are asked for: not how many there are, nor what fills or empties it."""
    above = parents[node]
    if isinstance(above, ast.Call) and node in above.args:
        return not (isinstance(above.func, ast.Name) and above.func.id == "len")
    if isinstance(above, ast.Subscript) and above.value is node and isinstance(above.slice, ast.Slice):
        return isinstance(above.ctx, ast.Load) and is_asked_for(parents, above)
    return isinstance(above, (ast.FormattedValue, ast.For, ast.comprehension, ast.BinOp, ast.keyword, ast.Tuple))


def nodes_of(facts: Facts, loop: LoopFact, name: str) -> list[ast.AST]:
    """The nodes of a loop and of the functions that it calls in which a name is that of the loop's function.

    Where it is only handed on from one to another is none of them.
    """
    nodes = (*rounds(loop.node), *sharing(facts, loop.node, name))
    return [node for node in nodes if not is_handed_on(facts, loop.node, node, name)]


def _is_empty(facts: Facts, made: Values) -> bool:
    """Whether something begins as a list with nothing in it."""
    origins = [value.origin for value in made]
    return bool(origins) and all(is_empty_list(facts, origin) for origin in origins)


def _are_numbers(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression is a Python number, or a list of them that a tensor gives."""
    return _is_listed(node) or is_number(facts, node) is True


def _is_listed(node: ast.expr) -> bool:
    """`labels.tolist()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist"


def appended(facts: Facts, loop: LoopFact) -> dict[str, list[ast.expr]]:
    """What is appended to each name, attribute or item in a loop, one by one or as a list.

    In functions that the loop calls, what is appended to places that it has, too.
    """
    found: dict[str, list[ast.expr]] = {}
    for node in rounds(loop.node):
        for to, value in _appending(facts, loop, node):
            found.setdefault(ast.unparse(to), []).append(value)
    for each in below(facts, loop.node):
        for to, value in (pair for node in facts.own(each.unit) for pair in _appending(facts, loop, node)):
            if each.shares(ast.unparse(to)):
                found.setdefault(ast.unparse(to), []).append(value)
    return found


def _appending(facts: Facts, loop: LoopFact, node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    match node:
        case ast.Call(func=ast.Attribute(value=to, attr="append" | "extend"), args=[value]) if is_place(to):
            yield to, value
        case ast.AugAssign(op=ast.Add(), target=ast.Name() as to, value=value) if is_list(facts, loop, to.id):
            yield to, _only(value)


def _only(node: ast.expr) -> ast.expr:
    """The item of a list that is written out and has one: `losses += [loss.item()]`."""
    return node.elts[0] if isinstance(node, ast.List) and len(node.elts) == 1 else node


def is_met(facts: Facts, loop: LoopFact, node: ast.expr, depth: int = _DEEPEST) -> bool:
    """Whether all processes come to some code of a loop, or of functions that it calls, in the same steps."""
    for above in facts.tree(node).up(node):
        if above is loop.node:
            return True
        if isinstance(above, TRIES) or (isinstance(above, _TESTED) and holds_own(facts, loop, above.test)):
            return False
    unit = facts.unit(node)
    if unit is loop.unit or not isinstance(unit, Function) or depth == 0:
        return False
    entered = {loop.unit, *(each.unit for each in below(facts, loop.node))}
    calls = [call.node for call in facts.callers(unit) if facts.unit(call.node) in entered]
    return bool(calls) and all(is_met(facts, loop, call, depth - 1) for call in calls)
