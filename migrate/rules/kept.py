"""What is said of what models, and data sets, keep of their batches while they run.

A part of the rule for metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.chance.seeds import modules_of
from migrate.programs.reach.forwards import forwards_inside
from migrate.programs.shares.counted_by_data import counted_by_data
from migrate.programs.shares.kept_by_handlers import kept_by_handlers
from migrate.programs.shares.kept_inside import kept_inside
from migrate.programs.training.rows_kept import rows_inside

if TYPE_CHECKING:
    import ast
    from collections.abc import Collection

    from migrate.programs.conversion import Conversion
    from migrate.programs.loops import LoopFact
    from migrate.rules.draft import Draft


def say_kept(conversion: Conversion, draft: Draft, calls: Collection[ast.Call]) -> None:
    """Say what the layers of trained models keep of their batches in buffers, which all have from the main process."""
    found = {forward for call in calls for forward in forwards_inside(conversion.facts, call)}
    units = sorted(found, key=lambda unit: (conversion.facts.file(unit.node).path, unit.node.lineno))
    for filling, kept in dict(rows_inside(conversion.facts, units)).items():
        what = f"the model keeps what it made of its batches in {kept}: all go on with that of the main process"
        draft.note(filling, what, "put in what all have: gather, or add up, what is put there above it")


def say_kept_inside(conversion: Conversion, draft: Draft, loop: LoopFact) -> None:
    """Say what hooks, handlers, forwards and data sets put away in a training, and what is read of it elsewhere."""
    facts, program = conversion.facts, conversion.program
    modules = modules_of(facts, program)  # hooks of other programs' files see none of these batches
    for filling, place in kept_inside(facts, conversion.loops, loop, program.model_origins):
        if facts.unit(filling).module in modules:
            draft.note(filling, f"{place}, filled while the model runs, is of one process's share of the data")
    for adding, place in kept_by_handlers(facts, loop):
        draft.note(adding, f"{place}, which each step adds to, is of one process's share of the data")
    for counting, place in counted_by_data(facts, loop):
        what = f"{place} counts what the data set gives: on each of N processes that is its own share"
        draft.note(counting, what, "let it go by a number that the training loop hands to it, or by the epoch")
