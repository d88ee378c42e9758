"""model-placement: the model is no longer moved by hand.

    model = Net().to(device)            ->   model = Net()
    model.cuda()                        ->   (gone)
    model = model.to(device, dtype)     ->   model = model.to(dtype)

prepare places it. Kept, to the accelerator's device: models that are not trained here, and models whose weights are
drawn after the move (`net.apply(init)`): moved later, they would be drawn from another random stream.
A trained model that is taken to the CPU, and met there only by batches of prepared loaders, stays on the device; one
that other tensors meet as well is refused.
Safe: prepare moves the same model to the same device before it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.device.moves import Fate
from migrate.rules.placing import drop
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG102")
def model_placement(conversion: Conversion, draft: Draft) -> None:
    """Drop the moves of trained models, and of loss functions that hold no tensors."""
    drop(conversion, draft, [m.node for m in conversion.moves if m.fate in (Fate.MODEL, Fate.CRITERION)])
