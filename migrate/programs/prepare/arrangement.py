"""What a program's prepare is given, and where: the schedulers have a say in it, which count batches or steps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from migrate.analysis.roles import Role
from migrate.programs.prepare.captures import kept
from migrate.programs.prepare.later import changed_between
from migrate.programs.prepare.placement import place
from migrate.programs.prepare.setup import arguments
from migrate.programs.schedule.rates import (
    EitherWay,
    counted_in_batches,
    measured_beside_numbers,
    measured_for_epochs,
    shortened,
)
from migrate.programs.stages import NoPlace

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.argument import Argument
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import Loops
    from migrate.programs.prepare.placement import Placement
    from migrate.programs.program import Program
    from migrate.programs.schedule.schedulers import Schedule
    from migrate.programs.stages import Stages


#: What needs objects prepared, and of which kinds: the length of a loader, an object that keeps a model.
Above: TypeAlias = "Mapping[ast.AST, frozenset[Role]]"
_Found: TypeAlias = "tuple[Placement, tuple[Named, ...]]"
_LOADERS = frozenset({Role.LOADER})
_TRAINED = frozenset({Role.MODEL, Role.OPTIMIZER})


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A program, its loaders and its schedules, for which places are looked for."""

    facts: Facts
    loops: Loops
    program: Program
    loaders: tuple[Named, ...]  # that are prepared
    planned: tuple[Schedule, ...]
    units: set[Unit]

    def placed(self, own: tuple[Argument, ...]) -> _Found:
        """The places, and the schedulers that are prepared; what is kept somewhere is prepared above that.

        `own`: what the accelerator is made with, beside what the program asks for. Raises NoPlace where there is none;
        what keeps a model that has no place above it is refused later.
        """
        above: Above = {}
        found = self._place(own, above)
        while more := self._kept(found[0].stages, above):
            above = {**above, **more}
            is_of_model = Role.MODEL in set().union(*more.values())
            try:
                earlier = self._place(own, above)
            except NoPlace:
                if not is_of_model:
                    raise
                break
            if is_of_model and self._is_changed_between(earlier, found):
                break
            found = earlier
        return found

    def _is_changed_between(self, first: _Found, second: _Found) -> bool:
        stages = (first[0].stages, second[0].stages)
        return changed_between(self.facts, self.program, self.units, *stages)

    def _kept(self, stages: Stages, above: Above) -> Above:
        """What keeps a loader or a model that is prepared below it, and asks for it then."""
        if self.program.unready:
            return {}
        for named, early in ((self.loaders, _LOADERS), (self.program.models, _TRAINED)):
            for refusal in kept(self.facts, self.loops, self.program, named, self.units, stages):
                if not early <= (before := above.get(refusal.node, frozenset())):
                    return {refusal.node: before | early}
        return {}

    def _place(self, own: tuple[Argument, ...], above: Above) -> _Found:
        """The places, and the schedulers that are prepared: stepped per batch, with a horizon in one process's batches.

        A horizon measured with len(loader) after prepare already counts the batches of N processes: that scheduler
        stays. One that is stepped per epoch is made before prepare, which divides that length. Where a length is set
        against steps, the loader is prepared before it is measured; `above` is what else it is prepared before.
        """
        objects = [*self.loaders, *self.program.models, *self.program.optimizers]
        asked = (*arguments(self.facts, self.loops, self.program), *own)
        first = self._at(objects, asked, above)
        try:
            taken = self._counted(first)
        except EitherWay as error:
            if {*error.measured} <= above.keys():
                raise
            return self._place(own, {**above, **dict.fromkeys(error.measured, _LOADERS)})
        early = [*taken, *self._shortened(first)]
        if not early:
            return self._below_numbers(first, objects, asked, above) or (first, ())
        placement = self._at([*objects, *(schedule.named for schedule in early)], asked, above)
        for schedule in self._shortened(placement):
            raise NoPlace(shortened(schedule.named.place(self.facts)))
        named = tuple(schedule.named for schedule in self._counted(placement))
        return replace(placement, stages=placement.stages.only([*objects, *named])), named

    def _below_numbers(
        self, first: Placement, objects: list[Named], asked: tuple[Argument, ...], above: Above
    ) -> _Found | None:
        """The places below schedulers that are made for a number of steps beside a length: they are prepared, too."""
        wanted = measured_beside_numbers(self.facts, self.program, self.planned, first.stages)
        if not wanted:
            return None
        named = [schedule.named for schedule in wanted]
        try:
            placement = self._at([*objects, *named], asked, above)
            is_counted = list(self._counted(placement)) == wanted
        except NoPlace:
            return None
        return (placement, tuple(named)) if is_counted else None

    def _at(self, objects: list[Named], asked: tuple[Argument, ...], above: Above) -> Placement:
        return place(self.facts, self.loops, self.program, objects, self.units, asked, above)

    def _counted(self, placement: Placement) -> Sequence[Schedule]:
        """The schedules that count the batches of one process."""
        return counted_in_batches(self.facts, self.loops, self.program, self.planned, placement.stages)

    def _shortened(self, placement: Placement) -> Sequence[Schedule]:
        """The schedules by epochs whose horizon prepare would divide."""
        return measured_for_epochs(self.facts, self.program, self.planned, placement.stages)
