"""What is decided about one program before any rule writes an edit. Rules read it; none of them changes it.

The decisions hang together (what is prepared says which moves go away, which says whether a device is still needed),
so they are made once, here, in the order in which they depend on each other.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

from migrate.analysis.known.distributed import DATA_PARALLEL
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import line_of, walk
from migrate.analysis.units import Function
from migrate.programs.amp.precision import Becomes
from migrate.programs.argument import CPU, Argument
from migrate.programs.device.defaults import made_before
from migrate.programs.device.early import is_new_there, only_before
from migrate.programs.device.host import Whereabouts, left_on_cpu, whereabouts
from migrate.programs.device.moved_early import too_early
from migrate.programs.device.moves import Move, moves
from migrate.programs.device.taken_off import TakenOff, taken_off
from migrate.programs.device.tensor_types import kept_from_gpu
from migrate.programs.evaluation.asked import needed_apart
from migrate.programs.evaluation.passes import (
    evaluated_in_full,
    evaluations,
    gathered_on_device,
    handed_out_loaders,
    prepared_loaders,
)
from migrate.programs.home.access import Access
from migrate.programs.home.around import around
from migrate.programs.home.closed import closed
from migrate.programs.home.given import kept_given
from migrate.programs.home.looks import below_prepare
from migrate.programs.home.naming import Named
from migrate.programs.home.saved_whole import saved_whole
from migrate.programs.loops import Loops
from migrate.programs.output.lent import asked_and_run
from migrate.programs.output.opened import is_only_opened
from migrate.programs.prepare.arrangement import Arrangement
from migrate.programs.prepare.at_times import prepared_at_times
from migrate.programs.prepare.by_hand import ByHand, unscaled_twice
from migrate.programs.prepare.by_hand import decide as decide_by_hand
from migrate.programs.prepare.captures import called_around, kept
from migrate.programs.prepare.dealt_twice import dealt_twice
from migrate.programs.prepare.irregular import out_of_step
from migrate.programs.prepare.later import after_the_first
from migrate.programs.prepare.own_batches import asked_by_loader
from migrate.programs.prepare.placement import Placement
from migrate.programs.prepare.renewed import unscaled_for_each
from migrate.programs.prepare.several import given_together, several, something_else
from migrate.programs.prepare.wrapped_before import wrapped_before
from migrate.programs.processes.agreement import Agreement, agreements
from migrate.programs.processes.replicas import ON_CPU
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.above_accelerator import earlier
from migrate.programs.reach.callees import Entered, Reaching, reached
from migrate.programs.reach.comprehensions import taken_apart
from migrate.programs.reach.entry_files import is_of_another_script
from migrate.programs.reach.outsiders import is_inside_model, units_of
from migrate.programs.schedule.rates import Rates, rates
from migrate.programs.schedule.schedulers import Schedule, schedules
from migrate.programs.stages import NoPlace, tell_apart
from migrate.programs.training.closures import returned_losses, unanswered
from migrate.programs.training.one_by_one import renewed_too_late
from migrate.programs.values.former import is_former
from migrate.programs.values.lengths import counted_in
from migrate.programs.values.takes import begun, taken

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Module, Unit
    from migrate.programs.device.whereabouts import Need
    from migrate.programs.evaluation.verdicts import InFull, Shared
    from migrate.programs.stages import Stages


_Made = TypeVar("_Made")
#: What Accelerate does not give at its top level.
_IN_UTILS = frozenset(
    "GradientAccumulationPlugin broadcast broadcast_object_list gather_object reduce send_to_device set_seed".split()
)


@dataclass(frozen=True, slots=True)
class Conversion:
    """The decisions about a program that is converted."""

    facts: Facts
    loops: Loops
    program: Program
    package: str  # that Accelerator is imported from
    access: Access
    units: frozenset[Unit]
    uses: tuple[Use, ...]  # the calls that its units make
    loaders: tuple[Named, ...]  # that are prepared
    schedules: tuple[Schedule, ...]
    prepared_schedulers: tuple[Named, ...]
    agreements: tuple[Agreement, ...]
    returned_losses: tuple[ast.expr, ...]  # by closures, to an optimizer that decides by them
    rates: Rates  # those that the program sets itself
    shared: tuple[Shared, ...]
    in_full: tuple[InFull, ...]
    where: Whereabouts
    on_cpu: tuple[ast.expr, ...]  # where tensors that stay on the CPU meet what is prepared: all of it stays there
    moves: tuple[Move, ...]
    taken_off: TakenOff
    placement: Placement
    by_hand: ByHand
    _made: dict[Callable[[Conversion], object], object] = field(default_factory=dict, repr=False, compare=False)

    def once(self, make: Callable[[Conversion], _Made]) -> _Made:
        """What a class or function makes of these decisions and the facts: made when first asked for, and kept."""
        if make not in self._made:
            self._made[make] = make(self)
        return cast("_Made", self._made[make])

    def home_of(self, name: str) -> str:
        """The module that gives a name of the API, such as `set_seed`."""
        return f"{self.package}.utils" if self.package == "accelerate" and name in _IN_UTILS else self.package

    @property
    def unscales_apart(self) -> bool:
        """Whether gradients are unscaled by a call of its own, after which Accelerate lets no clipping unscale them."""
        return self.package == "accelerate" and bool(self.by_hand.mixed.of(Becomes.UNSCALED))

    @property
    def loader_origins(self) -> set[ast.AST]:
        """Where the prepared loaders were made."""
        return {origin for named in self.loaders for origin in named.origins}

    @property
    def on_host(self) -> Mapping[ast.AST, Need]:
        """Where the loaders were made whose batches stay on the CPU until they are moved, and why."""
        return self.where.on_host

    @property
    def placed_origins(self) -> set[ast.AST]:
        """Where the prepared loaders were made that bring their batches to the device."""
        return self.loader_origins - self.on_host.keys()

    @property
    def speaking_units(self) -> list[Unit]:
        """The units in source order, with the code around an object that has the accelerator."""
        return [unit for unit in self.facts.units if unit in self.units or unit in self.access.around]

    @property
    def speaking_uses(self) -> list[Use]:
        """The calls that these make."""
        return [*self.uses, *(use for use in self.facts.calls if use.unit in self.access.around)]

    @property
    def ordered_units(self) -> list[Unit]:
        """The units in source order, file by file."""
        return [unit for unit in self.facts.units if unit in self.units]

    @property
    def modules(self) -> list[Module]:
        """The modules that its units stand in."""
        found = {unit.module for unit in self.units}
        return [module for module in self.facts.editable if module in found]

    def has_accelerator_at(self, statement: ast.stmt) -> bool:
        """Whether the accelerator exists when a statement of the program runs."""
        unit = self.facts.unit(statement)
        if unit in self.access.around:
            return self.access.around[unit].is_there(self.facts, statement)
        if unit is not self.program.start:
            return unit not in self.access.early
        spot = self.placement.accelerator
        return statement.lineno > spot.statement.lineno or (spot.where == "before" and statement is spot.statement)

    def is_prepared_at(self, node: ast.AST, made: set[ast.AST]) -> bool:
        """Whether the objects that were made at some places are prepared when a node of the program runs."""
        unit = self.facts.unit(node)
        stage = self.placement.stages.of(made)
        if isinstance(node, ast.Call) and is_former(self.facts, stage, counted_in(self.facts, node)):
            return False
        if unit in self.access.around:
            return self.access.around[unit].is_there(self.facts, node)
        if unit is not stage.unit:
            is_given = unit is self.program.start and bool(self.program.given & made)
            is_new = isinstance(node, ast.expr) and is_new_there(self, node, made)
            return not is_given and not is_new and not only_before(self, unit, made)
        return line_of(node) > stage.end or stage.is_of_last_round(self.facts.tree(node), node)


def convert(facts: Facts, loops: Loops, program: Program, package: str) -> Conversion | None:
    """The decisions; None if the program is refused, with the reasons in its `refusals`."""
    if program.home is None:
        return None
    before = list(program.refusals)
    tell_apart(facts, loops, program)
    handed_out = facts.once(handed_out_loaders) - program.training_loaders
    shared, in_full = evaluations(facts, loops, program, handed_out, can_ask=package == "runtime")
    where = whereabouts(facts, program)
    if package == "accelerate":
        shared, in_full = gathered_on_device(shared, in_full, where.on_host)
    loaders = prepared_loaders(program, in_full, handed_out)
    prepared = {origin for named in loaders for origin in named.origins}
    can_ask = package == "runtime"
    program.refusals += evaluated_in_full(facts, loops, program, loaders, in_full, handed_out, can_ask=can_ask)
    on_cpu = left_on_cpu(facts, loops, program, prepared - program.met_in_both)
    planned = tuple(schedules(facts, loops, program))
    units = units_of(facts, program)
    program.refusals += [*_wrapped_elsewhere(facts, program, units), *something_else(facts, program)]
    wanted = Arrangement(facts, loops, program, loaders, planned, units)
    try:
        by_hand, placement, with_schedulers = _placed(wanted, _staying(on_cpu))
    except NoPlace as error:
        program.refusals.append(error.refusal)
        return None
    if below := tuple(below_prepare(facts, loops, program, placement.stages)):
        program.evaluation, program.refusals = (*program.evaluation, *below), before
        return convert(facts, loops, program, package)
    set_by_count = rates(facts, loops, program, units, planned, placement.stages)
    program.refusals += [*set_by_count.refusals, *unanswered(facts, program, package)]
    program.refusals += [*_in_the_way(wanted, by_hand, placement, package)]
    placed = prepared - where.on_host.keys() - program.met_in_both
    off = TakenOff() if on_cpu else taken_off(facts, loops, program, placed, units)
    program.refusals += off.refusals
    if program.refusals:
        return None
    found = Conversion(
        facts,
        loops,
        program,
        package,
        Access(facts, loops, program, frozenset(earlier(facts, program, placement)), around(facts, program, units)),
        frozenset(units),
        tuple(use for use in facts.calls if use.unit in units),
        loaders,
        planned,
        with_schedulers,
        tuple(agreements(facts, loops, program)),
        returned_losses(facts, program),
        set_by_count,
        tuple(shared),
        tuple(in_full),
        where,
        tuple(on_cpu),
        tuple(moves(facts, program, placed, units, placement, off)),
        off,
        placement,
        by_hand,
    )
    program.refusals += needed_apart(found)
    return None if program.refusals else found


def _in_the_way(wanted: Arrangement, by_hand: ByHand, placement: Placement, package: str) -> Iterator[Refusal]:
    """What a program does that does not go with what is prepared, or where."""
    facts, loops, program, units, stages = wanted.facts, wanted.loops, wanted.program, wanted.units, placement.stages
    prepared = {origin for named in wanted.loaders for origin in named.origins}
    yield from unscaled_twice(facts, loops, program, by_hand.mixed, package)
    yield from unscaled_for_each(facts, program, units, package)
    yield from out_of_step(facts, loops, program, package)
    yield from made_before(facts, program, placement)
    yield from several(facts, program, wanted.loaders, placement)
    yield from given_together(facts, program, wanted.loaders)
    yield from kept_from_gpu(facts, program, placement.cpu)
    yield from _unprepared(facts, loops, program, (*wanted.loaders, *program.models), units, stages)
    yield from after_the_first(facts, loops, program, units, stages, prepared)
    yield from renewed_too_late(facts, program, units, prepared, stages)
    yield from dealt_twice(facts, loops, wanted.loaders)
    yield from asked_by_loader(facts, units, prepared, package)
    yield from prepared_at_times(facts, program, stages)
    yield from called_around(facts, program, units)
    yield from kept_given(facts, loops, program, units)
    yield from taken_apart(facts, program, units, placement)
    yield from too_early(facts, program, placement)


def _placed(wanted: Arrangement, staying: tuple[Argument, ...]) -> tuple[ByHand, Placement, tuple[Named, ...]]:
    """What stays by hand, where the accelerator and prepare go, and the schedulers that are prepared.

    Raises:
        NoPlace: there is none.
    """
    by_hand = decide_by_hand(wanted.facts, wanted.loops, wanted.program)
    try:
        placement, with_schedulers = wanted.placed((*by_hand.arguments, *staying))
        if (beside := by_hand.beside(wanted.facts, wanted.loops, with_schedulers)) is not by_hand:
            by_hand = beside
            placement, with_schedulers = wanted.placed((*by_hand.arguments, *staying))
        by_hand.check(wanted.facts, wanted.program, placement)
    except NoPlace as error:
        by_hand = by_hand.kept(error)
        placement, with_schedulers = wanted.placed(staying)
    return by_hand, placement, with_schedulers


def _unprepared(
    facts: Facts, loops: Loops, program: Program, prepared: Sequence[Named], units: set[Unit], stages: Stages
) -> Iterator[Refusal]:
    """What goes on with raw objects, must not get the prepared ones, or would be saved with them."""
    yield from kept(facts, loops, program, prepared, units, stages)
    yield from asked_and_run(facts, program, units, stages)
    yield from closed(facts, program)
    yield from saved_whole(facts, program)


def _staying(on_cpu: list[ast.expr]) -> tuple[Argument, ...]:
    return (Argument(CPU, ON_CPU),) if on_cpu else ()


def _wrapped_elsewhere(facts: Facts, program: Program, units: set[Unit]) -> list[Refusal]:
    """DataParallel around a trained model in code that is left as it is: every process would use all GPUs.

    Around a part of a model, or another one, it does so as well, unless that never runs in it.
    """
    gone = wrapped_before(facts, program, units)
    kept = [use for use in facts.calls_anywhere if use.unit not in units and facts.called(use.node) & DATA_PARALLEL]
    kept = [use for use in kept if use.node not in gone]
    met = reached(facts, units) if kept else ()
    kept = [use for use in kept if not is_of_another_script(facts, program, use.node)]
    wholes = {use: origins(facts.values(use.node), Role.MODEL) & program.model_origins for use in kept}
    return [
        Refusal(
            program.training[0].node,
            "MIG110",
            f"{'the' if wholes[use] else 'a'} model is wrapped in DataParallel in "
            f"{facts.file(use.node).path}:{use.node.lineno}, which stays{_why(facts, program, use.unit)}",
            "take DataParallel out there, and where it is needed put it around the model outside of that function",
        )
        for use in kept
        if wholes[use] or (use.unit in met and not is_only_opened(facts, use.node))
    ]


def _why(facts: Facts, program: Program, unit: Unit) -> str:
    """Why code is left as it is, where that is known."""
    place = program.outsiders.get(unit) if isinstance(unit, Function) else None
    if place:
        return f": its function is also used in {place}"
    return "" if facts.is_editable(unit) else ": that file was not named"


def reaches_model(conversion: Conversion, node: ast.AST) -> bool:
    """Whether code calls a trained model, goes through a loader or trains: all processes must enter it together."""
    loops = {id(loop.node) for loop in (*conversion.program.training, *conversion.program.evaluation)}
    for inner in walk(node):
        if id(inner) in loops or (isinstance(inner, ast.Call) and runs_model(conversion, inner)):
            return True
    return conversion.loops.trains(node)


def runs_model(conversion: Conversion, call: ast.Call) -> bool:
    """Whether a call runs a trained model, takes from a prepared loader, or enters what does so or trains."""
    facts = conversion.facts
    if origins(facts.values(call.func), Role.MODEL) & conversion.program.model_origins or takes(conversion, call):
        return True
    return any(map(conversion.once(_reaching), facts.targets(call)))


def takes(conversion: Conversion, call: ast.Call) -> bool:
    """Whether a call takes a batch of a prepared loader, or begins to: the order of a pass is that of all processes."""
    loaders = (taken(conversion.facts, call) | begun(conversion.facts, call)) & conversion.loader_origins
    return bool(loaders) and conversion.is_prepared_at(call, loaders)


def _reaching(conversion: Conversion) -> Reaching:
    """Whether functions run a trained model, take from a loader or train, by themselves or by what they call."""
    facts, program = conversion.facts, conversion.program
    loops = {id(loop.node) for loop in (*program.training, *program.evaluation)}

    def reaches(unit: Function) -> bool:
        nodes = facts.own(unit)
        return any(id(node) in loops for node in nodes) or any(
            _reaches(conversion, unit, c) for c in nodes.of(ast.Call)
        )

    return Reaching(reaches, facts.once(Entered).__getitem__)


def _reaches(conversion: Conversion, unit: Function, call: ast.Call) -> bool:
    facts = conversion.facts
    runs = origins(facts.values(call.func), Role.MODEL) & conversion.program.model_origins
    return bool(runs and not is_inside_model(facts, unit)) or takes(conversion, call)
