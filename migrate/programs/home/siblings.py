"""Programs of classes beside each other, whose common base makes the accelerator.

    class Base:
        def __init__(self, args):
            self.model = self.build().to(self.device)

`Forecast(Base)` and `Anomaly(Base)` each build, and train, a model of their own. No object is of both classes, so each
has one accelerator and one home. They change one base, so they are all converted, or none is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.analysis.construction import is_constructor
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.programs.program import Program


def are_siblings(one: Program, other: Program) -> bool:
    """Whether two programs are those of classes beside each other, and begin in the `__init__` of their base."""
    start = one.start
    if one is other or start is not other.start or not isinstance(start, Function) or not is_constructor(start):
        return False
    if not isinstance(one.home, Function) or not isinstance(other.home, Function):
        return False
    first, second = one.home.owner, other.home.owner
    if start.owner is None or first is None or second is None or start.owner not in {*first.mro()} & {*second.mro()}:
        return False
    return not first.is_related(second)


def siblings(program: Program, found: Sequence[Program]) -> Iterator[Program]:
    """The programs that are converted if this one is."""
    return (other for other in found if are_siblings(program, other))
