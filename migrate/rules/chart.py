"""The map of each program: which objects meet in which loop, and what flows between them.

A loss is followed back to the models that it was computed by (`migrate.rules.losses`). Where it cannot be followed, it
is drawn as computed by every model of the loop, which it can only be by.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis.evidence import called
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import arguments, line_of
from migrate.analysis.units import Function
from migrate.programs.schedule.schedulers import schedules
from migrate.report.map import Arrow, Flow, Frame, Map, Part, Place, Thing
from migrate.rules.losses import Losses
from migrate.rules.objects import Objects
from migrate.rules.summary import PACES, first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program

_ROLES = {
    Part.DATA: Role.LOADER,
    Part.MODEL: Role.MODEL,
    Part.OPTIMIZER: Role.OPTIMIZER,
    Part.SCHEDULER: Role.SCHEDULER,
}


_FLOWS = tuple(Flow)


class Cartographer:
    """Draws the programs of one run."""

    def __init__(self, facts: Facts, loops: Loops) -> None:
        self._facts = facts
        self._loops = loops
        self._objects = Objects(facts)
        self._losses = Losses(facts)

    def drawn(self, program: Program) -> Map:
        """The map of one program."""
        sheet = _Sheet(self._facts, self._loops, self._objects, program)
        frames = [self._training(sheet, loop) for loop in program.training]
        frames += [frame for loop in program.evaluation if (frame := self._evaluation(sheet, loop)) is not None]
        frames.sort(key=lambda frame: (frame.place.path != program.module.path, frame.place.path, frame.place.line))
        rounds = dict.fromkeys(frame.around for frame in frames if frame.around is not None)
        return Map(
            tuple(sheet.things), tuple(map(_in_order, frames)), tuple((place, sheet.header(place)) for place in rounds)
        )

    def _training(self, sheet: _Sheet, loop: LoopFact) -> Frame:
        optimizers = self._loops.trained_by(loop)
        trained: set[ast.AST] = set().union(*(self._facts.models_of.get(each, set()) for each in optimizers))
        losses = [(call, *self._losses.behind(call)) for call in loop.backwards]
        models = trained.union(*(made for _, made, _ in losses)) or self._run_in(loop.node)
        data = list(sheet.listed(Part.DATA, loop.loaders | loop.whole)) or [sheet.without_loader(loop)]
        nets = list(sheet.listed(Part.MODEL, models))
        steppers = list(sheet.listed(Part.OPTIMIZER, optimizers))
        arrows = self._fed(sheet, loop, data, models)
        found: list[int] = []
        for call, made, criterion in losses:
            loss = sheet.loss(call, criterion)
            found += [loss] * (loss not in found)
            feeding = list(sheet.listed(Part.MODEL, made or models))
            arrows += [Arrow(start, loss, Flow.OUTPUTS) for start in feeding]
            stepping = self._stepping(loop, call, optimizers, made & trained or trained)
            arrows += [Arrow(loss, end, Flow.GRADIENTS) for end in sheet.listed(Part.OPTIMIZER, stepping)]
        rates = list(sheet.schedulers(optimizers))
        arrows += [Arrow(start, end, Flow.RATE) for start, end in rates]
        arrows += [
            Arrow(stepper, net, Flow.UPDATES)
            for optimizer in optimizers
            for stepper in sheet.listed(Part.OPTIMIZER, {optimizer})
            for net in sheet.listed(Part.MODEL, self._facts.models_of.get(optimizer, set()) & models)
        ]
        things = (*data, *nets, *found, *steppers, *(start for start, _ in rates))
        return sheet.frame(loop, things, arrows, trains=True)

    def _stepping(self, loop: LoopFact, call: ast.Call, optimizers: set[ast.AST], models: set[ast.AST]) -> set[ast.AST]:
        """The optimizers that take the gradients of a backward call: those that step between it and the next one."""
        mine = {each for each in optimizers if self._facts.models_of.get(each, set()) & models} or optimizers
        unit = self._facts.unit(call)
        later = sorted(c.lineno for c in loop.backwards if self._facts.unit(c) is unit and c.lineno > call.lineno)
        end = later[0] if later else float("inf")
        steps = [update for update in self._loops.stepped(loop) if self._facts.unit(update.node) is unit]
        near = [u for u in steps if call.lineno <= line_of(u.node) < end]
        return {origin for update in near for origin in update.optimizers} & mine or mine

    def _evaluation(self, sheet: _Sheet, loop: LoopFact) -> Frame | None:
        """A loop that runs a model; None for one that only looks at the data."""
        models = self._run_in(loop.node)
        data = list(sheet.listed(Part.DATA, loop.loaders))
        nets = list(sheet.listed(Part.MODEL, models))
        if not nets:
            return None
        return sheet.frame(loop, (*data, *nets), self._fed(sheet, loop, data, models), trains=False)

    def _fed(self, sheet: _Sheet, loop: LoopFact, data: list[int], models: set[ast.AST]) -> list[Arrow]:
        """Batches to the models that are called with them; to all where none is seen to be."""
        taking = {
            (loader, model)
            for call in self._calls_in(loop.node)
            for model in origins(self._facts.values(call.func), Role.MODEL) & models
            for given in arguments(call)
            for loader in origins(self._facts.values(given), Role.BATCH, Role.SAMPLES) & loop.loaders
        }
        arrows = [
            Arrow(start, end, Flow.BATCHES)
            for loader, model in taking
            for start in sheet.listed(Part.DATA, {loader})
            for end in sheet.listed(Part.MODEL, {model})
        ]
        every = [Arrow(start, end, Flow.BATCHES) for start in data for end in sheet.listed(Part.MODEL, models)]
        return sorted(arrows or every, key=lambda arrow: (arrow.start, arrow.end))

    def _run_in(self, node: ast.AST) -> set[ast.AST]:
        """The models that code calls, itself or in functions that it enters."""
        found = {o for call in self._calls_in(node) for o in origins(self._facts.values(call.func), Role.MODEL)}
        return found - self._facts.parts(found)

    def _calls_in(self, node: ast.AST) -> Iterator[ast.Call]:
        roots = [node, *(unit.node for unit in self._loops.updates.functions(node))]
        return (inner for root in roots for inner in ast.walk(root) if isinstance(inner, ast.Call))


def _in_order(frame: Frame) -> Frame:
    return replace(
        frame, arrows=tuple(sorted(frame.arrows, key=lambda each: (_FLOWS.index(each.flow), each.start, each.end)))
    )


class _Sheet:
    """One map while it is drawn: each thing has one number, however often it is met."""

    def __init__(self, facts: Facts, loops: Loops, objects: Objects, program: Program) -> None:
        self._facts = facts
        self._loops = loops
        self._objects = objects
        self._schedules = schedules(facts, loops, program)
        self.things: list[Thing] = []
        self._numbers: dict[Thing, int] = {}
        self._lines: dict[str, tuple[str, ...]] = {}
        self._named = {
            Part.DATA: program.loaders,
            Part.MODEL: program.models,
            Part.OPTIMIZER: program.optimizers,
            Part.SCHEDULER: program.schedulers,
        }

    def _number(self, thing: Thing) -> int:
        if thing not in self._numbers:
            self._numbers[thing] = len(self.things)
            self.things.append(thing)
        return self._numbers[thing]

    def listed(self, part: Part, made: Iterable[ast.AST]) -> Iterator[int]:
        """The numbers of objects: under their names at home, else under those that they have anywhere."""
        wanted = set(made)
        role = _ROLES[part]
        things: list[Thing] = []
        for named in self._named[part]:
            if named.origins & wanted:
                wanted -= named.origins
                at = first(self._facts, named)
                things.append(Thing(part, named.target, self._objects.made(named.origins, role), self.place(at)))
        for origin in wanted & self._objects.known.keys():
            known = self._objects.known[origin]
            things.append(Thing(part, known.target, self._objects.made([origin], role), self.place(known.statement)))
        things.sort(key=lambda thing: (thing.place.path, thing.place.line, thing.name))
        yield from dict.fromkeys(map(self._number, things))

    def without_loader(self, loop: LoopFact) -> int:
        """What stands for data that no loader gives."""
        return self._number(Thing(Part.DATA, "made in the loop", "", self.place(loop.node), "no DataLoader"))

    def loss(self, call: ast.Call, criterion: str) -> int:
        """What a backward call is called on; of `torch.autograd.backward` what it is given."""
        func = call.func
        is_method = isinstance(func, ast.Attribute) and func.attr == "backward" and not self._facts.called(call)
        root = func.value if is_method and isinstance(func, ast.Attribute) else (call.args or [func])[0]
        name = ast.unparse(root)
        short = name if len(name) <= 30 else f"{name[:29]}…"
        return self._number(Thing(Part.LOSS, short, criterion, self.place(call)))

    def schedulers(self, optimizers: set[ast.AST]) -> Iterator[tuple[int, int]]:
        """The schedulers of some optimizers, each with the optimizer whose rate it sets."""
        for schedule in self._schedules:
            named = schedule.named
            over = {each for o in named.origins for each in origins(self._facts.over(o), Role.OPTIMIZER)} & optimizers
            made = self._objects.made(named.origins, Role.SCHEDULER)
            place = self.place(first(self._facts, named))
            number = self._number(
                Thing(Part.SCHEDULER, named.target, made, place, PACES[schedule.pace], schedule.is_within_epochs)
            )
            yield from ((number, end) for end in self.listed(Part.OPTIMIZER, over))

    def frame(self, loop: LoopFact, things: Iterable[int], arrows: Iterable[Arrow], *, trains: bool) -> Frame:
        """A loop, with what meets in it."""
        around = next(iter(self._loops.around(loop.node, loop.unit)), None)
        place = self.place(loop.node)
        where = called(loop.unit) if isinstance(loop.unit, Function) else ""
        above = self.place(around) if around is not None else None
        kept = tuple(dict.fromkeys(things))
        return Frame(trains, place, where, self.header(place), above, kept, tuple(dict.fromkeys(arrows)))

    def place(self, node: ast.AST) -> Place:
        """The line of a node."""
        file = self._facts.file(node)
        self._lines[file.path] = file.lines
        return Place(file.path, getattr(node, "lineno", 1))

    def header(self, place: Place) -> str:
        """The text of a line, without what stands before and behind it."""
        return self._lines[place.path][place.line - 1].strip()
