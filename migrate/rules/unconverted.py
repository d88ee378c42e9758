"""unconverted-loop: a training loop in plain PyTorch.

A loop is a training loop if a loss's `backward()` is called in it, or in a function that it calls. Loops that already
go through an accelerator, and those that a framework runs (Lightning's modules), are not flagged.

    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()          # <- flagged at its `for`
        optimizer.step()

`migrate --write` converts it, or says what stands in the way and how to do that part by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG001")
def unconverted(conversion: Conversion, draft: Draft) -> None:
    """The finding itself is made for every program, converted or not; there is nothing to edit."""
