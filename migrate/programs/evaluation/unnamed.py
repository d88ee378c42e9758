"""Evaluations over a loader that has no name where the training's objects are made: `prepare` never sees it.

`def evaluate(self): loader = DataLoader(...)` makes one for each evaluation. Every process runs over the whole of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.conversion import reaches_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.programs.conversion import Conversion
    from migrate.programs.loops import LoopFact


def unnamed_evaluations(conversion: Conversion) -> Iterator[LoopFact]:
    """The loops that run a trained model over such a loader."""
    program = conversion.program
    known = {loop.node for loop in (*program.training, *program.evaluation)}
    prepared = {origin for loader in program.loaders for origin in loader.origins}
    for loop in conversion.loops.evaluation:
        if loop.unit not in conversion.units or loop.node in known or loop.loaders & prepared:
            continue
        if reaches_model(conversion, loop.node):
            yield loop
