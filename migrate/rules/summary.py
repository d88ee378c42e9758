"""One short paragraph about each program: what was understood, what is done, and what could not be resolved."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.binders import Binders
from migrate.analysis.evidence import called
from migrate.analysis.gaps import Gaps
from migrate.analysis.roles import Role
from migrate.analysis.syntax import walk
from migrate.analysis.units import Function
from migrate.programs.prepare.scripts import begun_by
from migrate.programs.schedule.schedulers import Pace, schedules
from migrate.programs.training.loose import trained_alone
from migrate.report.model import Summary
from migrate.rules.objects import Objects
from migrate.rules.told import LEFT
from migrate.rules.unresolved import unresolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module, Unit
    from migrate.programs.conversion import Conversion
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program

MOST = 4  # objects, loops or callers of a kind that are named one by one
PACES = {
    Pace.BATCH: "stepped per batch",
    Pace.EPOCH: "stepped per epoch",
    Pace.TOLD: "stepped to where it is told",
    Pace.METRIC: "stepped on a metric",
    Pace.NEVER: "never stepped in sight",
}


def tied(facts: Facts, program: Program, conversion: Conversion | None) -> tuple[str, ...]:
    """The files that stand or fall together with a program."""
    files = {program.module.path, *begun_by(facts, program), *(loop.unit.module.path for loop in program.training)}
    if conversion is not None:
        files |= {unit.module.path for unit in conversion.units}
    return tuple(sorted(files))


class Narrator:
    """Tells about the programs of one run."""

    def __init__(self, facts: Facts, loops: Loops) -> None:
        self._facts = facts
        self._loops = loops
        self._objects_of = Objects(facts)
        self._binders = Binders(facts)
        self._gaps = Gaps(facts, self._binders)

    def told(self, program: Program, conversion: Conversion | None) -> Summary:
        """The paragraph, and the files that stand or fall together."""
        sentences = [f"{self._training(program)}{self._evaluation(program)}."]
        missing = unresolved(self._facts, self._loops, self._gaps, program)
        if missing:
            sentences.append(f"Not resolved: {_and(self._placed(program, *each) for each in missing)}.")
        if conversion is None:
            sentences.append(_reason(program))
        parts = tuple(sorted(m.path for m in self._imported(program) if m.file.named and m is not program.module))
        return Summary(program.module.path, " ".join(sentences), tied(self._facts, program, conversion), parts)

    # --- sentences --------------------------------------------------------------------------------------------------

    def _training(self, program: Program) -> str:
        optimizers = set().union(*(self._loops.trained_by(loop) for loop in program.training))
        models = set().union(*(self._facts.models_of.get(origin, set()) for origin in optimizers))
        alone = [ast.unparse(each) for each in dict.fromkeys(trained_alone(self._facts, program))]
        trained = self._objects(program, program.models, models, Role.MODEL)
        text = f"trains {_and(each for each in (trained, *map('`{}`'.format, alone)) if each) or 'what is not known'}"
        with_ = [self._objects(program, program.optimizers, optimizers, Role.OPTIMIZER), self._schedulers(program)]
        if used := _and(each for each in with_ if each):
            text += f" with {used}"
        if loaders := self._loaders(program, program.training):
            text += f" on {loaders}"
        return f"{text} in {self._places(program, program.training)}"

    def _schedulers(self, program: Program) -> str:
        return _and(
            f"`{each.named.target}` ({self._made(program, each.named, PACES[each.pace])})"
            for each in schedules(self._facts, self._loops, program)
        )

    def _evaluation(self, program: Program) -> str:
        """Loops over a loader with the model in them, and those that only look at the data."""
        text = ""
        with_model = [loop for loop in program.evaluation if self._has_model(loop)]
        others = [loop for loop in program.evaluation if loop not in with_model]
        for verb, loops in (("evaluates on", with_model), ("also goes over", others)):
            if loops:
                text += f"; {verb} {self._loaders(program, loops)} in {self._places(program, loops)}"
        return text

    def _has_model(self, loop: LoopFact) -> bool:
        return any(
            value.role is Role.MODEL
            for node in walk(loop.node)
            if isinstance(node, (ast.Name, ast.Attribute))
            for value in self._facts.values(node)
        )

    # --- objects ----------------------------------------------------------------------------------------------------

    def _loaders(self, program: Program, loops: Iterable[LoopFact]) -> str:
        wanted = {origin for loop in loops for origin in loop.loaders}
        named = [each for each in program.loaders if each.origins & wanted]
        return self._objects(program, named, wanted, Role.LOADER)

    def _objects(self, program: Program, named: Sequence[Named], made: set[ast.AST], role: Role) -> str:
        """The objects by their names at home, else by those that they have anywhere."""
        if named:
            return _and(f"`{each.target}` ({self._made(program, each)})" for each in named)
        by_name: dict[str, list[ast.AST]] = {}
        known = self._objects_of.known
        for origin in sorted(made & known.keys(), key=lambda o: (self._path(o), _line(o), known[o].target)):
            by_name.setdefault(known[origin].target, []).append(origin)
        return _and(
            f"`{target}` ({', '.join(filter(None, [self._objects_of.made(mine, role), self._all_at(program, mine)]))})"
            for target, mine in by_name.items()
        )

    def _made(self, program: Program, named: Named, *more: str) -> str:
        made = self._objects_of.made(named.origins, named.role)
        return ", ".join(filter(None, [made, *more, self._place(program, first(self._facts, named))]))

    # --- places -----------------------------------------------------------------------------------------------------

    def _places(self, program: Program, loops: Sequence[LoopFact]) -> str:
        by_unit: dict[Unit, list[LoopFact]] = {}
        for loop in loops:
            by_unit.setdefault(loop.unit, []).append(loop)
        return _and(self._loops_of(program, unit, mine) for unit, mine in by_unit.items())

    def _loops_of(self, program: Program, unit: Unit, loops: Sequence[LoopFact]) -> str:
        places = self._all_at(program, [loop.node for loop in loops])
        where = ""
        if isinstance(unit, Function):
            where = f" (in {called(unit)}{'' if unit is program.home else self._called_from(program, unit)})"
        return f"the loop{'s' if len(loops) > 1 else ''} at {places}{where}"

    def _called_from(self, program: Program, unit: Function) -> str:
        calls = [call.node for call in self._binders.callers(unit)]
        return f", called from {self._all_at(program, calls)}" if calls else ""

    def _all_at(self, program: Program, nodes: Iterable[ast.AST]) -> str:
        """Line 3; lines 3 and 5; engine.py:7 and line 3."""
        places = list(dict.fromkeys(self._place(program, node) for node in nodes))
        if len(places) > 1 and all(place.startswith("line ") for place in places):
            return f"lines {_and(place.removeprefix('line ') for place in places)}"
        return _and(places)

    def _place(self, program: Program, node: ast.AST) -> str:
        path = self._path(node)
        return f"line {_line(node)}" if path == program.module.path else f"{path}:{_line(node)}"

    def _placed(self, program: Program, what: str, node: ast.AST) -> str:
        return what.replace("<place>", self._place(program, node))

    def _path(self, node: ast.AST) -> str:
        return self._facts.file(node).path

    def _imported(self, program: Program) -> set[Module]:
        """The modules that a program is made of."""
        found = {program.module}
        waiting = [program.module]
        while waiting:
            new = self._imports(waiting.pop()) - found
            found |= new
            waiting += new
        return found

    def _imports(self, module: Module) -> set[Module]:
        if module not in self._imports_of:
            self._imports_of[module] = self._binders.imports(module)
        return self._imports_of[module]

    @cached_property
    def _imports_of(self) -> dict[Module, set[Module]]:
        return {}


def _reason(program: Program) -> str:
    """Why a program is left as it is; the report has the way out."""
    if not program.refusals:
        return f"{LEFT}."
    first = program.refusals[0]
    more = len({(r.code, r.why) for r in program.refusals}) - 1
    also = f", and for {more} more reason{'s' if more > 1 else ''}" if more else ""
    return f"{LEFT}: {first.why} ({first.code}){also}."


def first(facts: Facts, named: Named) -> ast.AST:
    """Where an object gets its name, or was made."""
    return named.statements[0] if named.statements else named.place(facts)


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 1)


def _and(texts: Iterable[str]) -> str:
    """a, b and c; the rest of a long list is counted."""
    listed = list(texts)
    if len(listed) > MOST:
        listed = [*listed[:MOST], f"{len(listed) - MOST} more"]
    return " and ".join([", ".join(listed[:-1]), listed[-1]]) if len(listed) > 1 else "".join(listed)
