"""schedulers: the learning rate after k epochs, or after k samples, is that of the original.

| original                                               | converted               |
|--------------------------------------------------------|-------------------------|
| stepped per batch, horizon from len(loader) before prepare | prepared            |
| stepped per batch, horizon from len(loader) after prepare  | not prepared        |
| stepped per batch, horizon a plain number                  | prepared, reported  |
| stepped per epoch                                          | not prepared        |
| ReduceLROnPlateau                                          | not prepared        |

A prepared scheduler steps once for every process at each call, since N processes see N batches in one step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.schedulers import Horizon, Pace
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG118", "schedulers", optional=True)
def schedulers(conversion: Conversion, draft: Draft) -> None:
    """Say what was decided; the decision itself shows in prepare's arguments."""
    for schedule in conversion.schedules:
        place = schedule.named.statements[-1]
        name = schedule.named.target
        if schedule.pace is Pace.BATCH and schedule.horizon is Horizon.ABSOLUTE:
            draft.note(
                place,
                f"{name} is stepped per batch over a fixed number of steps: prepared, so that N processes reach it "
                "after the same number of samples",
            )
