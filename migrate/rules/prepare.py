"""prepare: one call hands loaders, models and optimizers to the accelerator.

    train_loader, model, optimizer = accelerator.prepare(train_loader, model, optimizer)

It stands after the last constructor that it needs and before the first use; a scheduler takes part if it counts the
batches of one process (see MIG118). Evaluation loaders take part if their loops can be shared out (see MIG114).
Refused: programs that train or evaluate before everything is made.
Safe: on one process the objects come back as they are, the model on the accelerator's device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.rules.layout import assignment, place
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG104", "prepare")
def prepare(conversion: Conversion, draft: Draft) -> None:
    """Insert the call."""
    spot = conversion.placement.prepare
    home = conversion.program.home
    assert home is not None
    targets = [named.target for named in conversion.prepared]
    accelerator = conversion.access.of(home)
    at = place(conversion.facts.file(spot.statement), spot.statement)
    draft.after(spot.statement, assignment(targets, f"{accelerator}.prepare", targets, at), spaced=True)
