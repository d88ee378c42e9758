"""autocast: contexts of low precision are the accelerator's.

    with torch.cuda.amp.autocast():                    ->   with accelerator.autocast():
    with torch.autocast("cuda", enabled=args.amp):     ->   with accelerator.autocast():

This goes with the scaler (see MIG106). Contexts of programs without one, or whose scaler is kept, stay as they are:
they mean the same on several processes.
Safe: the same statements stay in the context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG107")
def autocast(conversion: Conversion, draft: Draft) -> None:
    """Rewrite the contexts that the accelerator takes over."""
    for made in conversion.by_hand.mixed.contexts:
        draft.rewrite(made, f"{conversion.access.name(made)}.autocast()")
