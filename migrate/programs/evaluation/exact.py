"""How an evaluation loop is made exact on several processes (contract E3).

Two ways, both exact:

* *shared out*: the loader is prepared; in an evaluation pass every process computes its rows of each original batch,
  and `gather_for_metrics` right after the last forward call gives every process the whole batch back. All that follows
  in the loop body is then what one process would compute, whatever it is: sums, means of batch means, lists, figures.
* *in full*: the loader is not prepared and every process evaluates everything. Always right, never faster.

The first is chosen only where it is proven that nothing in the loop looks at the batch before the gather. A loader that
is trained on is prepared, so there the second is not possible; `gathered_first` gives every process the whole batch as
the loop's first statement instead.
"""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from migrate.analysis.known import data
from migrate.analysis.roles import FROM_LOADER, ROWS, only, roles
from migrate.analysis.syntax import binds, is_docstring, unused_name, walk
from migrate.analysis.units import Class, Function
from migrate.analysis.widening import in_order
from migrate.programs.chance.calls import draws_in_evaluation, draws_samples
from migrate.programs.chance.unnumbered import taken_beside_number
from migrate.programs.evaluation.apart import mixes_rows
from migrate.programs.evaluation.at_once import at_once, named_loaders
from migrate.programs.evaluation.beside import beside
from migrate.programs.evaluation.collating import Collating
from migrate.programs.evaluation.counted import counted
from migrate.programs.evaluation.fielded import has_parts, is_fielded
from migrate.programs.evaluation.fixed_rows import says_rows
from migrate.programs.evaluation.forwards import Forward, NotShared, forwards, is_plain, looks_at_batch
from migrate.programs.evaluation.judging import is_model_call, judging, model_calls
from migrate.programs.evaluation.kept_inside import kept_inside
from migrate.programs.evaluation.late import counting_late
from migrate.programs.evaluation.one_row import drops_rows
from migrate.programs.evaluation.reading import first_read, names_of, read_after
from migrate.programs.evaluation.turned_inside import turns_samples
from migrate.programs.evaluation.verdicts import InFull, Shared
from migrate.programs.processes.clocks import own_test
from migrate.programs.processes.junctions import junctions
from migrate.programs.reach.callees import entered, reached
from migrate.programs.reach.forwards import forwards_inside
from migrate.programs.shares.own_sums import summing
from migrate.programs.training.begun import iterators
from migrate.programs.training.modes import Mode
from migrate.programs.training.unsteady import unsteady
from migrate.programs.values.results import carried, folded, is_listed, is_tuple_of_more
from migrate.programs.values.states_kept import states_kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.program import Program
    from migrate.programs.training.modes import Modes


def decide(facts: Facts, program: Program, modes: Modes, loop: LoopFact) -> Shared | InFull:
    """How one evaluation loop is made exact."""
    calls = model_calls(facts, loop)
    try:
        return _shared(facts, program, modes, loop, calls)
    except NotShared as reason:
        if judges := judging(facts, program, calls):
            with suppress(NotShared):
                return _shared(facts, program, modes, loop, [call for call in calls if call not in judges])
        return InFull(loop, str(reason))


def _shared(facts: Facts, program: Program, modes: Modes, loop: LoopFact, calls: Sequence[ast.Call]) -> Shared:
    """The loop shared out, where it is gathered below the last of some calls of models."""
    if not calls:
        raise NotShared("the model is not called in the loop itself")
    _check_reach(facts, program, loop)
    _check_data(facts, loop)
    _check_models(facts, program)
    _check_mode(facts, program, modes, loop)
    _check_sums(facts, loop)
    _check_states(facts, loop, calls)
    if (kept := kept_inside(facts, calls)) is not None:
        raise NotShared(kept)
    _check_ends(facts, program, loop)
    found = forwards(facts, loop, calls)
    ways = [_on_way(facts, loop, forward) for forward in found]
    return ways[0] if len(ways) == 1 else _together(ways, found)


def _on_way(facts: Facts, loop: LoopFact, forward: Forward) -> Shared:
    """What is gathered on one way through the loop."""
    late = counting_late(facts, forward.before, forward.unnamed or forward.statement, forward.later)
    forward = forward.without(late)
    _check_before(facts, forward.before)
    _check_beside(facts, loop, forward)
    names = _names(facts, loop, forward)
    assert isinstance(loop.node, (ast.For, ast.AsyncFor))  # a `while` is none (`Loops.evaluation`)
    targets = {name.id for name in names_of(loop.node.target)}
    lists = tuple(name for name in names if name in targets and is_listed(facts, loop.node, name))
    plain = tuple(name for name in names if name not in lists)
    inside_only = [name for name in plain if read_after(facts, loop, name) is None]
    sized = counted(facts, loop.node, forward.before, forward.later, inside_only, forward.inside)
    plain = tuple(name for name in plain if all(name != node.id for node in sized))
    result = _only_result(forward)
    unnamed = forward.unnamed
    if result is not None and result not in plain:
        plain, unnamed = (result, *plain[1:]), None
    return Shared(loop, forward.statement, plain, lists, unnamed=unnamed, counted=sized, late=late)


def _only_result(forward: Forward) -> str | None:
    """The name that is given what the model's call gives, and nothing else."""
    match forward.statement:
        case ast.Assign([ast.Name(name)], value) if value is forward.unnamed:
            return name
    return None


def _together(ways: list[Shared], found: list[Forward]) -> Shared:
    """What is gathered on each way, where that is the same: below the branches, or in each of them."""
    first, branching = ways[0], found[0].branching
    if any(
        (set(way.names), set(way.lists), way.late) != (set(first.names), set(first.lists), first.late) for way in ways
    ):
        raise NotShared("what is read of the batch differs from branch to branch")
    if any(way.unnamed is not None for way in ways):
        raise NotShared("the model is called in several branches, and its result is used at once")
    counted = {node: other for way in ways for node, other in way.counted.items()}
    if branching is not None and all(forward.ends_branch for forward in found):
        return replace(first, after=branching, counted=counted)
    if first.late:
        raise NotShared("what is read of the batch differs from branch to branch")
    return replace(first, also=tuple(way.after for way in ways[1:]), counted=counted)


def _check_ends(facts: Facts, program: Program, loop: LoopFact) -> None:
    """All processes must take as many batches."""
    tree = facts.tree(loop.node)
    for junction in (each for node in walk(loop.node) for each in junctions(tree, node)):
        leaving = any(isinstance(node, _LEAVING) for side in junction.sides for part in side for node in walk(part))
        if leaving and own_test(facts, program, junction.test) is not None:
            raise NotShared(f"`{ast.unparse(junction.test)}` may end it, or a round of it, on one process alone")


_LEAVING = (ast.Break, ast.Continue, ast.Return)


def _check_sums(facts: Facts, loop: LoopFact) -> None:
    if (call := summing(facts, loop)) is not None:
        raise NotShared(f"line {call.lineno} sums something up over the processes, each of which must have all of it")


def gathered_first(facts: Facts, program: Program, modes: Modes, whole: InFull) -> Shared | InFull:
    """A loop over a prepared loader in which every process computes every batch; as it was if that cannot be."""
    loop = whole.loop
    if not isinstance(loop.node, ast.For) or not is_plain(loop.node.target):
        return whole
    try:
        _check_reach(facts, program, loop)
        _check_rows(facts, loop)
    except NotShared:
        return whole
    names = []
    for name in [n.id for n in names_of(loop.node.target)]:
        reading = [n for n in names_of(loop.node) if n.id == name and isinstance(n.ctx, ast.Load)]
        after = read_after(facts, loop, name)
        reading += [] if after is None else [after]
        values = facts.values(reading[0]) if reading else frozenset()
        if not roles(values) & FROM_LOADER:
            continue
        if any(is_fielded(facts, node) for node in reading):
            return whole
        names.append(name)
    if not names or modes.at(loop.node) is Mode.UNKNOWN:
        return whole
    lists = tuple(name for name in names if is_listed(facts, loop.node, name))
    return Shared(loop, loop.node.body[0], tuple(n for n in names if n not in lists), lists, before=whole.why)


def asked_whole(facts: Facts, program: Program, modes: Modes, whole: InFull) -> Shared | InFull:
    """A loop whose batches cannot be gathered, such as graphs, is given them whole; as it was, where it draws."""
    loop = whole.loop
    if not isinstance(loop.node, ast.For):
        return whole
    try:
        _check_reach(facts, program, loop)
        _check_samples(facts, loop)
        if _runs_model(facts, loop):
            _check_models(facts, program)
            _check_mode(facts, program, modes, loop)
        _check_sums(facts, loop)
    except NotShared:
        return whole
    over = named_loaders(facts, loop)
    if not over:
        return whole
    return Shared(loop, loop.node.body[0], (), before=whole.why, whole=over)


def _runs_model(facts: Facts, loop: LoopFact) -> bool:
    """Whether a model is called in a loop, or by what it calls; else no mode makes a difference to it."""
    inside = (node for unit in reached(facts, entered(facts, loop.node)) for node in facts.own(unit))
    return any(isinstance(n, ast.Call) and is_model_call(facts, n) for n in chain(walk(loop.node), inside))


def _check_reach(facts: Facts, program: Program, loop: LoopFact) -> None:
    """A loop that cannot be edited: out of the named files, or in a function that other programs run, too."""
    file = facts.file(loop.node)
    if not file.named:
        raise NotShared(f"its loop is in {file.path}, which was not named")
    if isinstance(loop.unit, Function) and loop.unit in program.outsiders:
        raise NotShared(f"its function is also used in {program.outsiders[loop.unit]}, by another program")


def _check_data(facts: Facts, loop: LoopFact) -> None:
    _check_rows(facts, loop)
    _check_samples(facts, loop)


def _check_samples(facts: Facts, loop: LoopFact) -> None:
    """A data set that draws random numbers per sample would draw others if it were shared out, or on each process."""
    for loader in sorted(loop.loaders, key=lambda made: (facts.file(made).path, getattr(made, "lineno", 0))):
        for value in in_order(facts.over(loader)):
            if isinstance(value.unit, Class) and (why := draws_samples(facts, value.unit)) is not None:
                raise NotShared(why)
            if isinstance(value.unit, Class) and taken_beside_number(facts, value.unit) is not None:
                raise NotShared(f"{value.unit.node.name}.__getitem__ gives what comes next, whatever its number is")
            given = facts.over(value.origin) if value.origin is not None else ()
            if any(inner.name.startswith(data.RANDOM_TRANSFORM) for inner in given):
                raise NotShared("its data set applies random transforms")


def _check_rows(facts: Facts, loop: LoopFact) -> None:
    if isinstance(loop.node, ast.For) and at_once(facts, loop.node.iter):
        raise NotShared("its batches are in a list before it begins")
    for loader in loop.loaders:
        if not facts.once(Collating).has_rows_first(loader):
            raise NotShared("its collate_fn decides which dimension of a batch is the samples")


def _check_models(facts: Facts, program: Program) -> None:
    """A model that draws random numbers when it is evaluated would draw others for a share of the batch."""
    values = {v for origin in program.model_origins if isinstance(origin, ast.expr) for v in facts.values(origin)}
    for value in sorted(values, key=lambda each: each.name):
        for member in value.unit.lookup("forward") if isinstance(value.unit, Class) else ():
            if isinstance(member.unit, Function) and draws_in_evaluation(facts, member.unit, set()):
                raise NotShared(f"{value.name.rpartition('.')[2]}.forward draws random numbers")


def _check_states(facts: Facts, loop: LoopFact, calls: Sequence[ast.Call]) -> None:
    """A model that goes on from batch to batch needs them all, in their order."""
    inside = {forward for call in calls for forward in forwards_inside(facts, call)}
    for statement, name in states_kept(facts, inside, loop.node, in_training=False):
        raise NotShared(f"the model carries self.{name} from batch to batch (line {statement.lineno})")


def _check_mode(facts: Facts, program: Program, modes: Modes, loop: LoopFact) -> None:
    """The runtime takes a pass for an evaluation if gradients are off or every model is in eval mode at its start.

    Without eval mode, a batch that is cut gives other statistics and draws other numbers.
    """
    mode = modes.at(loop.node)
    if mode is Mode.UNKNOWN:
        begun = next(
            (f", from line {call.lineno} on, where its iterator is made" for call in iterators(facts, loop.node)), ""
        )
        raise NotShared(f"it is not seen to run under torch.no_grad() or with the model in eval mode{begun}")
    if mode is Mode.NO_GRADIENTS and (layer := unsteady(facts, program)):
        which = (
            "not every model, one with {}, is seen" if len(program.models) > 1 else "the model, with {}, is not seen"
        )
        raise NotShared(f"{which.format(layer)} to be in eval mode")


def is_evaluating(facts: Facts, program: Program, modes: Modes, loop: LoopFact) -> bool:
    """Whether the mode of the models, and gradients that are off, tell a loop for an evaluation."""
    try:
        _check_mode(facts, program, modes, loop)
    except NotShared:
        return False
    return True


def _check_before(facts: Facts, before: list[ast.stmt]) -> None:
    """Nothing but names may take what is computed from the batch before it is whole again."""
    for statement in before:
        if isinstance(statement, ast.If):
            if looks_at_batch(facts, statement.test):
                raise NotShared(f"line {statement.lineno} asks for the batch before the model's result is there")
            _check_before(facts, statement.body + statement.orelse)
        elif isinstance(statement, ast.With) and not any(looks_at_batch(facts, item) for item in statement.items):
            _check_before(facts, statement.body)
        elif (
            (isinstance(statement, ast.Assign) and all(is_plain(target) for target in statement.targets))
            or isinstance(statement, ast.Pass)
            or is_docstring(statement)
            or not looks_at_batch(facts, statement)
        ):
            continue
        else:
            raise NotShared(f"line {statement.lineno} looks at the batch before the model's result is there")


def _check_beside(facts: Facts, loop: LoopFact, forward: Forward) -> None:
    """Nothing that was made for the whole batch may meet a share of it."""
    assert isinstance(loop.node, (ast.For, ast.AsyncFor))
    targets = {name.id for name in names_of(loop.node.target)}
    if state := carried(forward.statement, forward.before, targets):
        raise NotShared(f"{state} is carried from batch to batch")
    if why := beside(facts, (*forward.before, forward.statement)):
        raise NotShared(why)
    for going_by_rows in (mixes_rows, drops_rows, says_rows):
        if why := going_by_rows(facts, forward.before, forward.statement):
            raise NotShared(why)
    stored = [name.id for name in names_of(forward.statement) if isinstance(name.ctx, ast.Store)]
    read = [n for n in stored if first_read(n, forward.later, forward.inside) or read_after(facts, loop, n)]
    if why := turns_samples(facts, forward.statement, read):
        raise NotShared(why)


def _names(facts: Facts, loop: LoopFact, forward: Forward) -> tuple[str, ...]:
    """What is computed from the batch up to the forward call and read after it, results of the model first."""
    assert isinstance(loop.node, (ast.For, ast.AsyncFor))
    inside = forward.inside
    results = [] if inside else [n.id for n in names_of(forward.statement) if isinstance(n.ctx, ast.Store)]
    taken = [n.id for n in names_of(loop.node.target)]
    computed = [name for statement in forward.before for name in sorted(binds(statement))]
    names = [unused_name(facts.tree(loop.node), "outputs", "model_outputs", "gathered_outputs")] if inside else []
    for name in dict.fromkeys([*results, *taken, *computed]):
        read = first_read(name, forward.later, inside) or read_after(facts, loop, name)
        if read is None:
            continue
        values = facts.values(read)
        reading = _reading(facts, loop, forward, name, inside)
        if why := has_parts(facts, values, reading):
            raise NotShared(f"{name} {why}")
        if not roles(values) & FROM_LOADER:
            continue
        if not only(frozenset(v for v in values if v.role in FROM_LOADER), *ROWS):
            raise NotShared(f"{name} folds the rows of the batch, or is on the CPU, before they can be gathered")
        if name in results:
            _check_result(facts, forward.statement, name, reading)
        names.append(name)
    if not names:
        raise NotShared("nothing that is read after the model's call has rows")
    return tuple(names)


def _reading(facts: Facts, loop: LoopFact, forward: Forward, name: str, inside: set[int]) -> list[ast.Name]:
    """Every place that may read the gathered rows under a name."""
    found = [n for statement in forward.later for n in names_of(statement) if n.id == name and id(n) not in inside]
    after = read_after(facts, loop, name)
    found += [] if after is None else [after]
    return [node for node in found if isinstance(node.ctx, ast.Load)]


def _check_result(facts: Facts, statement: ast.stmt, name: str, reading: list[ast.Name]) -> None:
    if why := folded(facts, statement, name, reading):
        raise NotShared(why)
    assert isinstance(statement, ast.Assign)  # which gives the result its names
    if is_tuple_of_more(facts, statement.value, reading, is_one=not isinstance(statement.targets[0], ast.Name)):
        raise NotShared(f"{name} may hold a loss beside rows")
