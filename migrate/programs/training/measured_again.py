"""Statistics of batch normalization that PyTorch takes anew from a loader: `update_bn(loader, averaged)`.

Over a prepared loader each process takes them from its share. They are means over the batches: those of all processes
are the means of theirs.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.syntax import argument_at
from migrate.programs.values.kept import is_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.programs.conversion import Conversion

_MEASURING = frozenset({"torch.optim.swa_utils.update_bn"})


@dataclass(frozen=True, slots=True)
class Measured:
    """A statement that takes the statistics of a model, and the model; None: it has no name there."""

    statement: ast.stmt
    model: ast.expr | None


def measured_again(conversion: Conversion) -> Iterator[Measured]:
    """Where a model takes its statistics from the shares of a prepared loader."""
    facts = conversion.facts
    for use in facts.calls:
        if not facts.called(use.node) & _MEASURING or facts.unit(use.node) not in conversion.units:
            continue
        loader, model = argument_at(use.node, 0, "loader"), argument_at(use.node, 1, "model")
        made = facts.loaders(facts.values(loader)) if loader is not None else set()
        if made & conversion.loader_origins and conversion.is_prepared_at(use.node, made):
            has_name = model is not None and is_place(model)
            yield Measured(facts.tree(use.node).statement(use.node), model if has_name else None)
