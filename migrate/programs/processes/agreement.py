"""Where a process would go its own way by its own batch, and how all of them decide together instead.

`if torch.isnan(loss): continue`: one process goes on alone, and the others wait for it in backward for ever. All skip
the step if one of them would, and train only if all of them would: `if accelerator.gather(torch.isnan(loss)).any():`.

Where a number is compared (`if loss.item() > 100: break`), it is the one that one process would have asked for, the
mean of theirs; so it is with what they do alike beside the step: evaluate, keep the best weights, step a scheduler.
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, PLACE, Role, roles
from migrate.analysis.syntax import FUNCTIONS, rounds, walk
from migrate.programs.marker import parts
from migrate.programs.processes.alike import Alike, rate_places
from migrate.programs.processes.clocks import by_system, deciding, is_drawn, own_test
from migrate.programs.processes.duties import Duty, duties_of
from migrate.programs.processes.junctions import Junction, iterated, junctions
from migrate.programs.processes.raised import Raising
from migrate.programs.processes.replicas import by_chance, chance, has_buffers
from migrate.programs.program import Refusal
from migrate.programs.values.content import depends_on_batch, goes_by_content, goes_by_values
from migrate.programs.values.numbers import is_number
from migrate.programs.values.scalars import Scalar, Scalars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.processes.clocks import Own
    from migrate.programs.program import Program


@dataclass(frozen=True, slots=True)
class Number:
    """What of a condition is one process's own number."""

    node: ast.expr
    is_tensor: bool


@dataclass(frozen=True, slots=True)
class Agreement:
    """A condition on which all processes have to agree; it holds if it holds for one of them, or for all.

    Where there are means, it is asked of the means of the numbers of all processes instead; what is drawn is what the
    main process has drawn.
    """

    test: ast.expr
    for_one: bool
    is_tensor: bool  # else it is a Python value
    means: tuple[Number, ...] = ()
    of_main: bool = False
    is_truth: bool = True  # else its value is used, not only whether it holds

    @property
    def word(self) -> str:
        """`any` or `all`."""
        return "any" if self.for_one else "all"


def agreements(facts: Facts, loops: Loops, program: Program) -> list[Agreement]:
    """The conditions on which the processes must agree, where they can."""
    clocked = (each.agreed for each in program.once(_clocked, facts, loops).values())
    found = (*clocked, *_decisions(facts, loops, program).values())
    return list({each.test: each for each in found if each is not None}.values())


def parting_ways(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Conditions on which they cannot agree: they are not asked by all processes, or both sides matter."""
    for junction, agreed in _decisions(facts, loops, program).items():
        if agreed is None:
            yield Refusal(
                junction.node,
                "MIG122",
                f"what follows from `{ast.unparse(junction.test)}` depends on the process's own batch: processes would "
                f"part ways, and {'not all of them come here' if junction.is_truth else _NO_TRUTH}",
                "ask for the condition at the top of the loop over the batches, in an `if` of its own",
            )
    yield from _run_apart(facts, loops, program)
    for decision, chosen in program.once(_clocked, facts, loops).items():
        if chosen.agreed is None and (refusal := _refused(facts, loops, program, decision, chosen)) is not None:
            yield refusal


#: Why processes cannot agree on how many rounds there are, on a case, or on a value that is used.
_NO_TRUTH = "no answer of all of them can take its place"


def _decisions(facts: Facts, loops: Loops, program: Program) -> dict[Junction, Agreement | None]:
    """The tests by which a process would part, each with how all agree on it; None: they cannot."""
    alike = _alike(facts, loops, program)
    found: dict[Junction, Agreement | None] = {}
    raising = facts.once(Raising)
    for loop in program.training:
        entered = loops.updates.functions(loop.node)
        units = [unit.node for unit in entered if loops.trains(unit.node) or raising[unit]]
        for junction in (each for root in (loop.node, *units) for each in _inside_of(facts, root)):
            if junction not in found and _is_own(facts, loop, junction):
                duties = duties_of(facts, loops, alike, junction)
                if any(duties) and not (_is_plain(duties) and _is_of_all(facts, loop, junction)):
                    found[junction] = _agreement(facts, loop, junction, duties)
    return found


def _alike(facts: Facts, loops: Loops, program: Program) -> Alike:
    steps = [loops.taking(loop.node) for loop in program.training]
    units = {unit.node: None for step in steps for unit in loops.updates.functions(step) if loops.trains(unit.node)}
    takes = (item for step in steps for item in loops.takes(step).items())
    shared = (call for call, made in takes if made & program.training_loaders)  # the next pass begins for all at once
    return Alike(facts, (*(loop.node for loop in program.evaluation), *shared), rate_places(facts, (*steps, *units)))


def _inside_of(facts: Facts, root: ast.AST) -> Iterator[Junction]:
    return (junction for node in rounds(root) for junction in junctions(facts.tree(node), node))


def _is_own(facts: Facts, loop: LoopFact, junction: Junction) -> bool:
    """Whether a test goes by a process's own batch; a number of rounds by what the batch holds, not by its size."""
    if isinstance(junction.node, ast.Match) or junction.is_truth:
        return depends_on_batch(facts, loop, junction.test)
    return goes_by_values(facts, loop, junction.test)


def _run_apart(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Where a process runs the model by its own batch, and its statistics are exchanged with the others."""
    if not program.training_loaders or not has_buffers(facts, program):
        return
    alike, agreed = Alike(facts, ()), _decisions(facts, loops, program)
    for loop in program.training:
        for junction in _inside_of(facts, loop.node):
            if junction not in agreed and goes_by_content(facts, loop, junction.test):
                running = [alike.runs(program.model_origins, side) for side in junction.sides]
                if None in running and (call := next(filter(None, running), None)) is not None:
                    yield _runs_apart(call, junction.test)


def _runs_apart(call: ast.Call, test: ast.expr) -> Refusal:
    why = (
        f"`{ast.unparse(call)}` runs, or does not, by the process's own batch (`{ast.unparse(test)}`), and the "
        "statistics that the model keeps are exchanged whenever it runs"
    )
    return Refusal(call, "MIG122", why, "run it in every step, or under torch.no_grad()")


def _clocked(facts: Facts, loops: Loops, program: Program) -> dict[ast.AST, _Chosen]:
    """What is decided by a clock, the system or a draw, over a loader."""
    alike = _alike(facts, loops, program)
    found: dict[ast.AST, _Chosen] = {}
    for loop in program.training:
        units = [unit for unit in loops.updates.functions(loop.node) if loops.trains(unit.node)]
        for node, own in deciding(facts, loops, program, loop):
            agreed, asked = None, list(junctions(facts.tree(node), node))
            is_near = facts.unit(node) in (loop.unit, program.home) and _is_among_steps(facts, loops, node)
            if (is_near or facts.unit(node) in units) and len(asked) == 1:
                agreed = _by_all(facts, loop, asked[0], own, duties_of(facts, loops, alike, asked[0]))
            found[node] = _Chosen(agreed, own)
        for root in (loop.node, *loops.around(loop.node, loop.unit), *(unit.node for unit in units)):
            for junction in _inside_of(facts, root) if loop.loaders else ():
                duties = duties_of(facts, loops, alike, junction) if junction.node not in found else []
                if any(duties) and not _is_lone(facts, loop, junction):
                    if (by := own_test(facts, program, junction.test)) is not None:
                        found[junction.node] = _Chosen(
                            _by_all(facts, loop, junction, by, duties), by, is_beside=_is_plain(duties)
                        )
    return found


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What decides by something of the process's own: how all agree on it, if they can, and what that is."""

    agreed: Agreement | None
    own: Own
    is_beside: bool = False  # whether the step is taken either way


def _by_all(
    facts: Facts, loop: LoopFact, junction: Junction, own: Own, duties: Sequence[Duty | None]
) -> Agreement | None:
    """How all agree on what one of them has measured or drawn: a draw is as good as another, so the first is taken."""
    if not any(duties):
        return None
    if not is_drawn(facts, own):
        return _agreement(facts, loop, junction, duties)
    if not _is_common(facts, loop, junction):
        return None
    return Agreement(junction.test, for_one=True, is_tensor=False, of_main=True, is_truth=junction.is_truth)


def _refused(facts: Facts, loops: Loops, program: Program, node: ast.AST, chosen: _Chosen) -> Refusal | None:
    """Why a program is left where not all can agree; None: what is drawn is seeded alike on all."""
    what = _ALIKE if chosen.is_beside else None
    if not is_drawn(facts, chosen.own):
        return by_system(facts, node, chosen.own, what)
    missing = chance(facts, loops, program) if program.one_seed is None else []
    return by_chance(node, missing, what) if missing else None


#: What is decided where the step is taken either way.
_ALIKE = "what all must do alike is decided here"


def _is_among_steps(facts: Facts, loops: Loops, node: ast.AST) -> bool:
    """Whether a test is asked between steps, and not once above them, where there may be no accelerator yet."""
    return isinstance(node, ast.While) or any(loops.trains(around) for around in facts.tree(node).loops(node))


def _agreement(facts: Facts, loop: LoopFact, junction: Junction, duties: Sequence[Duty | None]) -> Agreement | None:
    if not junction.is_truth or not _is_common(facts, loop, junction):
        return None
    if means := _means(facts, loop, junction.test):
        return Agreement(junction.test, for_one=True, is_tensor=False, means=means)
    first = next((duty for duty in Duty if duty in duties), None)
    if duties[0] is duties[1] and first is not Duty.ALIKE:
        return None
    for_one = duties[1] is first if first is Duty.TRAINS else duties[0] is first
    return Agreement(junction.test, for_one, _is_tensor(facts, junction.test))


def _is_plain(duties: Iterable[Duty | None]) -> bool:
    """Whether the step itself is taken either way."""
    return set(duties) <= {Duty.ALIKE, None}


def _is_of_all(facts: Facts, loop: LoopFact, junction: Junction) -> bool:
    """Whether a test comes out the same for all batches, or is one for the process: that is another question."""
    return not goes_by_content(facts, loop, junction.test) or _is_lone(facts, loop, junction)


def _is_lone(facts: Facts, loop: LoopFact, junction: Junction) -> bool:
    """Whether a test goes by which process it is, or stands where one does."""
    deciding = [each.test for each in _above(facts, loop, junction)]
    return any(
        parts(test) or any(isinstance(inner, ast.expr) and roles(facts.values(inner)) & PLACE for inner in walk(test))
        for test in (junction.test, *deciding)
    )


def _above(facts: Facts, loop: LoopFact, junction: Junction) -> Iterator[Junction]:
    """What decides in a step, inside of its function, whether a test is asked."""
    tree, node = facts.tree(junction.node), junction.node
    within = itertools.takewhile(
        lambda above: above is not loop.node and not isinstance(above, FUNCTIONS), tree.up(node)
    )
    for each in (found for above in (node, *within) for found in junctions(tree, above)):
        if each.decides(junction.test):
            yield each


def _means(facts: Facts, loop: LoopFact, test: ast.expr) -> tuple[Number, ...]:
    """The numbers of a test of which all take the mean; none where it also asks for what has no mean."""
    found = list(_numbers(facts, loop, test))
    numbers = [number for number in found if number is not None]
    inside = {inner for number in numbers for inner in walk(number.node)}
    rest = {ast.unparse(n) for n in walk(test) if isinstance(n, (ast.Name, ast.Attribute)) and n not in inside}
    return () if len(numbers) < len(found) or rest & _set_apart(facts, loop) else tuple(numbers)


def _set_apart(facts: Facts, loop: LoopFact) -> set[str]:
    """What is set in a step where a process's own batch decides."""
    own = (each for each in _inside_of(facts, loop.node) if depends_on_batch(facts, loop, each.test))
    return {
        ast.unparse(inner)
        for junction in own
        for part in itertools.chain(*junction.sides)
        for inner in walk(part)
        if isinstance(inner, (ast.Name, ast.Attribute)) and isinstance(inner.ctx, ast.Store)
    }


def _numbers(facts: Facts, loop: LoopFact, test: ast.expr) -> Iterator[Number | None]:
    """The numbers of one process that a test compares; None: something that has no mean."""
    if isinstance(test, (ast.BoolOp, ast.Compare)) or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
        for part in ast.iter_child_nodes(test):
            if isinstance(part, ast.expr):
                yield from _numbers(facts, loop, part)
    elif depends_on_batch(facts, loop, test):
        kind = Scalars(facts, loop).kind(test)
        yield None if kind in (None, Scalar.WHOLE) else Number(test, kind is Scalar.TENSOR)


def _is_common(facts: Facts, loop: LoopFact, junction: Junction) -> bool:
    """Whether all processes come to a test in each step."""
    if any(depends_on_batch(facts, loop, each.test) for each in _above(facts, loop, junction)):
        return False
    return _is_as_often(facts, loop, junction.node, set())


def _is_as_often(facts: Facts, loop: LoopFact, node: ast.AST, seen: set[ast.AST]) -> bool:
    """Whether a node is run once a step, or as often by all; a function is where it is called."""
    for above in (node, *facts.tree(node).up(node)):
        if above is loop.node:
            return True
        if isinstance(above, FUNCTIONS):
            unit = facts.function(above)
            calls = facts.callers(unit) if unit is not None and above not in seen else ()
            seen.add(above)
            return all(_is_as_often(facts, loop, call.node, seen) for call in calls)
        if isinstance(above, ast.ExceptHandler) or any(depends_on_batch(facts, loop, over) for over in iterated(above)):
            return False
    return True


def _is_tensor(facts: Facts, test: ast.expr) -> bool:
    """Whether a test is a tensor, which one collective call gathers; else it is asked for its truth."""
    if not isinstance(test, ast.Call) or is_number(facts, test) is True:
        return False
    if isinstance(test.func, ast.Attribute) and test.func.attr in ("any", "all") and not test.args:
        return isinstance(test.func.value, ast.Call) and _is_tensor(facts, test.func.value)
    is_torch = any(name.startswith("torch.") for name in facts.called(test))
    return is_torch and bool(roles(facts.values(test)) & (FROM_LOADER | {Role.TENSOR}))
