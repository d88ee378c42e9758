"""What ends a training after a number of steps: `if 0 < args.max_steps < global_step: break` (contract E5).

Such a training takes as many steps on N processes, with N batches in each. Where a schedule may also be made for the
length of a loader (`t_total = args.max_steps or epochs * len(loader)`), that must be a number of steps, too.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.same import EXITS
from migrate.analysis.syntax import walk
from migrate.programs.schedule.schedulers import Pace
from migrate.programs.values.counts import Counts, Met
from migrate.programs.values.cut import is_cut
from migrate.programs.values.lengths import Moments, lengths
from migrate.programs.values.rounds import range_of
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program
    from migrate.programs.schedule.schedulers import Schedule

_PATHS = (ast.Name, ast.Attribute)
#: What goes through something again and again.
_ENDLESS = frozenset({"itertools.cycle", "itertools.repeat"})


def ends(
    facts: Facts, loops: Loops, program: Program, moments: Moments, asking: Sequence[ast.AST] = ()
) -> tuple[ast.expr, ...]:
    """What ends the training after a number of steps, whatever they hold; nothing: it ends by epochs.

    Of several loops those count that `asking` stands in, the steps of a scheduler: another phase has an end of its own.
    """
    training = [loop for loop in program.training if _holds(facts, loops, loop, asking)] or program.training
    counted = [_own_count(facts, loops, program, loop) for loop in training]
    if counted and counted[0] is not None and None not in counted:
        return (counted[0],)
    within = [test for loop in training for test in _tests(facts, loops, program, moments, loop)]
    if not within:
        return ()
    around = [test for loop in training for test in _tests_around(facts, loops, program, moments, loop)]
    return tuple(dict.fromkeys((*within, *around)))


def is_for_either(facts: Facts, schedule: Schedule, ended: Sequence[ast.expr], moments: Moments) -> bool:
    """Whether a scheduler is made for the number that ends the training, or for a length measured before prepare."""
    is_early = any(False in moments.after(length) for length in schedule.measured)
    return schedule.pace is Pace.BATCH and is_early and is_made_for(facts, schedule, ended)


def is_made_for(facts: Facts, schedule: Schedule, ended: Sequence[ast.expr]) -> bool:
    """Whether a scheduler is made with something that has a say in when the training ends."""
    asked = facts.once(Sources).behind(ended)
    names = {path for node in asked if isinstance(node, ast.expr) for path in _paths(node)}
    return any(path in names for node in schedule.given for path in _paths(node))


def _holds(facts: Facts, loops: Loops, loop: LoopFact, asking: Sequence[ast.AST]) -> bool:
    own = {loop.node, loops.taking(loop.node)}
    return any(not own.isdisjoint(loops.around(node, facts.unit(node))) for node in asking)


def _tests(facts: Facts, loops: Loops, program: Program, moments: Moments, loop: LoopFact) -> Iterator[ast.expr]:
    """The conditions that a training loop, or one around it, goes on by, and those under which it is left."""
    for around in (loop.node, *loops.around(loop.node, loop.unit)):
        if isinstance(around, ast.While) and _is_global(facts, loops, program, moments, around.test):
            yield around.test
    yield from _leaving(facts, loops, program, moments, loops.taking(loop.node))


def _tests_around(facts: Facts, loops: Loops, program: Program, moments: Moments, loop: LoopFact) -> Iterator[ast.expr]:
    """Those that leave the loops around it once it has been left."""
    for around in loops.around(loop.node, loop.unit):
        yield from _leaving(facts, loops, program, moments, around)


def _leaving(facts: Facts, loops: Loops, program: Program, moments: Moments, loop: ast.AST) -> Iterator[ast.expr]:
    for node in walk(loop):
        if isinstance(node, ast.If) and any(_leaves(facts, inner) for part in node.body for inner in walk(part)):
            if _is_global(facts, loops, program, moments, node.test):
                yield node.test


def _own_count(facts: Facts, loops: Loops, program: Program, loop: LoopFact) -> ast.expr | None:
    """What a loop counts through that takes as many steps on N processes, since nothing deals its batches out."""
    around = (loop.node, *loops.around(loop.node, loop.unit))
    counted = [node.iter for node in around if isinstance(node, ast.For)]
    own = loop.node.test if isinstance(loop.node, ast.While) else loop.node.iter
    if not loop.loaders:
        return own
    if any(facts.loaders(facts.values(each)) for each in counted):
        return None
    if is_cut(facts, loop.node) and facts.singles.runs_again(loop.node):  # an epoch, of which each has its share
        return None
    in_sight = facts.once(Sources).behind(counted)
    is_plain = isinstance(own, (ast.List, ast.Tuple)) or bool(range_of(facts, own))
    return own if is_plain and not any(True for n in in_sight for _ in lengths(facts, program, n)) else None


def _leaves(facts: Facts, node: ast.AST) -> bool:
    return isinstance(node, (ast.Break, ast.Return)) or (
        isinstance(node, ast.Call) and bool(facts.called(node) & EXITS)
    )


def _is_global(facts: Facts, loops: Loops, program: Program, moments: Moments, test: ast.expr) -> bool:
    """Whether a test sets a count of steps that goes on from epoch to epoch against a number."""
    counts = Counts(facts, loops, program, moments)
    counts.of(test)
    against = [meeting for meeting in counts.meetings if meeting.met is not Met.STEPS]
    return any(not _restarts(facts, carrier) for meeting in against for carrier in meeting.carriers)


def _restarts(facts: Facts, carrier: ast.expr) -> bool:
    """`for i, batch in enumerate(loader)`: a count that begins anew with each epoch."""
    found = facts.bindings_in(facts.unit(carrier))
    statements = [b.statement for b in found if isinstance(carrier, ast.Name) and b.target == carrier.id]
    return bool(statements) and all(isinstance(each, ast.For) and not _goes_on(facts, each) for each in statements)


def _goes_on(facts: Facts, loop: ast.For) -> bool:
    """`for i, batch in enumerate(forever(loader))`: one count through all epochs."""
    if facts.singles.runs_again(loop):
        return False
    calls = list(walk(loop.iter).of(ast.Call))
    inside = (node for call in calls for unit in facts.targets(call) for node in facts.own(unit).of(ast.While))
    is_endless = any(isinstance(node.test, ast.Constant) and bool(node.test.value) for node in inside)
    return is_endless or any(facts.called(call) & _ENDLESS for call in calls)


def _paths(node: ast.AST) -> Iterator[str]:
    """The names and attributes that a piece of code reads, as they are written: of `args.steps` not `args`."""
    inside = {inner.value for inner in walk(node) if isinstance(inner, ast.Attribute)}
    inside |= {inner.func for inner in walk(node) if isinstance(inner, ast.Call)}
    return (ast.unparse(inner) for inner in walk(node) if isinstance(inner, _PATHS) and inner not in inside)
