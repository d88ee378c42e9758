"""Training programs of other tasks, put together from the ways in which people write each part: those of tasks.toml.

A curve, a code, lines of text, pictures in parts, several labels, pairs, two heads, texts of different lengths; their
settings come from the command line, a file, a class or a dictionary.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import idioms
from idioms import Made

if TYPE_CHECKING:
    import random

SHARED = ("seed",)
CONFIG = {"device": "cuda", "batch_size": 8, "train": {"epochs": 3}}
#: What every program has, in this order; the rest is in the ways.
WHOLE = {
    "objects": "<data>\n<loaders>\n<model>\n<criterion>\n<optimizer>\n<scheduler>",
    "loaders": """
@train_loader = DataLoader(train_set, batch_size=%batch%, shuffle=True%collate%)
@val_loader = DataLoader(val_set, batch_size=%batch%, shuffle=False%collate%)""",
    "collate": "",
    "number": "%epochs%",
    "end of epoch": "<rates>\n<after an epoch>\n<save>",
    "rates": 'print("lr", epoch, ["%.6f" % group["lr"] for group in @optimizer.param_groups])',
}


@cache
def parts() -> dict[str, list[dict]]:
    """The ways of each part; those of a task come last, and before all others."""
    found = {name: idioms.parts()[name] for name in SHARED} | idioms.parts_of("tasks.toml")
    return found | {"task": found.pop("task")}


def made(chance: random.Random) -> Made:
    """A program of ways that chance takes, with the file that its settings may be in."""
    program = idioms.of(chance, parts(), WHOLE)
    return replace(program, files=program.files | {"config.json": json.dumps(CONFIG)})
