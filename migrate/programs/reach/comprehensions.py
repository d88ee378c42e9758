"""Comprehensions over a prepared loader: `[y for x, y in loader]` is a loop, too."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.prepare.placement import Placement


def taken_apart(facts: Facts, program: Program, units: set[Unit], placement: Placement) -> Iterator[Refusal]:
    """`sum(... for x, y in loader)` after prepare: each process has its own share of what is trained on."""
    for module in facts.editable:
        for node in facts.tree_of(module).nodes:
            if not isinstance(node, ast.comprehension):
                continue
            loaders = facts.loaders(facts.values(node.iter)) & program.training_loaders
            unit = facts.unit(node.iter)
            stage = placement.stages.of(loaders)
            is_early = unit is stage.unit and node.iter.lineno <= stage.end
            if loaders and unit in units and not is_early:
                yield Refusal(
                    node.iter,
                    "MIG114",
                    "a comprehension runs over a loader that is trained on, and would see one process's share",
                    "make a second DataLoader over the same data for it",
                )
