"""Training programs of two models, put together from the ways in which people write each part: those of pairs.toml.

A generator and a discriminator, a code and what reads it, a student and a teacher, a model and its average.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import idioms
from idioms import Made

if TYPE_CHECKING:
    import random

#: What the programs of one model have as well; of the data only batches of two parts.
SHARED = ("seed", "device", "data", "loaders", "move", "telling")
#: What every program has, in this order; the rest is in the ways.
WHOLE = {
    "objects": "<device>\n<data>\n<loaders>\n<made>\n<placed>\n<criterion>\n<optimizers>\n<scheduler>",
    "train": "<modes>\n<begin>\nfor batch in @train_loader:\n    <step of a batch>\n<show>",
    "step of a batch": "<open>\n<move>\n<update>\n<add>",
    "give": "return one.item(), two.item()",
    "evaluate": """
@first.eval()
@second.eval()
total, good, count = 0.0, 0, 0
with torch.no_grad():
    for batch in @val_loader:
        <open>
        <move>
        <compute>
        total += errors.sum().item()
        good += (errors < 0.7).sum().item()
        count += len(y)
val_loss, score = total / count, good / count""",
    "end of epoch": "<tell>\n<rates>\n<after an epoch>\n<save>",
    "rates": 'print("lr", epoch, ["%.6f" % group["lr"] for group in %rate%.param_groups])',
}


@cache
def parts() -> dict[str, list[dict]]:
    """The ways of each part; those of a kind of training come last, and before all others."""
    shared = {name: idioms.parts()[name] for name in SHARED}
    return shared | idioms.parts_of("pairs.toml")


def made(chance: random.Random) -> Made:
    """A program of ways that chance takes."""
    return idioms.of(chance, parts(), WHOLE)
