"""Losses that are not a plain mean over the batch: averaged over processes, their gradients weigh otherwise."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.training.modes import without_gradients

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_WEIGHING = {"weight": "weighted by class", "ignore_index": "taken over what is not ignored"}


def unlike_means(facts: Facts, units: Collection[Unit]) -> Iterator[tuple[ast.Call, str]]:
    """The losses of some units that sum, or whose mean is weighted, with what is said about each."""
    for use in facts.calls:
        if (
            use.unit not in units
            or not any(map(_is_loss, facts.called(use.node)))
            or without_gradients(facts, use.node)
        ):
            continue
        given = {k.arg: k.value for k in use.node.keywords if k.arg is not None}
        reduction, average = (given.get(name) for name in ("reduction", "size_average"))
        if _is(reduction, "sum") or _is(average, False):
            yield use.node, "this loss is a sum: N processes average their gradients, which divides it by N"
        elif not _is(reduction, "none") and (why := [told for name, told in _WEIGHING.items() if name in given]):
            yield use.node, f"this loss is a mean {why[0]}: that of N processes' batches is not the mean of their means"


def _is_loss(name: str) -> bool:
    return name.startswith("torch.nn.") and name.endswith(("Loss", "loss", "cross_entropy", "entropy_with_logits"))


def _is(node: ast.expr | None, value: object) -> bool:
    return isinstance(node, ast.Constant) and node.value == value
