"""Losses that are called with another reduction than a plain mean: averaged over processes, they weigh otherwise."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, origins, roles
from migrate.programs.training.divided_losses import Divisions, by_size, trains_nothing
from migrate.programs.training.reductions import (
    NEAR,
    OF_A_PART,
    SUM,
    counts_chosen,
    how_often,
    is_constant,
    is_loss,
    making,
    sums,
)
from migrate.programs.values.batch_size import is_size
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Function, Unit

_UNLIKE = "this loss is a mean {}: that of N processes' batches is not the mean of their means"
_WEIGHING = {"weight": "weighted by class", "ignore_index": "taken over what is not ignored"}


def unlike_means(facts: Facts, units: Collection[Unit]) -> Iterator[tuple[ast.Call, str]]:
    """The losses of some units that sum, or whose mean is weighted, with what is said about each."""
    for use in facts.calls:
        if use.unit not in units or not any(map(is_loss, facts.called(use.node))) or trains_nothing(facts, use.node):
            continue
        given = {k.arg: k.value for k in use.node.keywords if k.arg is not None}
        reduction, average = (given.get(name) for name in ("reduction", "size_average"))
        if is_constant(given.get("reduce"), False):
            continue
        if is_constant(reduction, "sum") or is_constant(average, False):
            if said := _why_summed(facts, use):
                yield use.node, said
        elif not is_constant(reduction, "none") and (
            why := [told for name, told in _WEIGHING.items() if name in given]
        ):
            yield use.node, _UNLIKE.format(why[0])


def _why_summed(facts: Facts, made: Use) -> str | None:
    """What is said about a loss that sums; nothing where each of its values is divided by the size of its batch.

    One that is kept, `self.criterion = nn.MSELoss(reduction="sum")`, is judged where it is called.
    """
    uses = [use for use in facts.calls if made.node in origins(facts.values(use.node.func), Role.CRITERION)]
    uses = [use for use in uses if not trains_nothing(facts, use.node)] or [made]

    def all_divided(divisions: Divisions) -> bool:
        return all(divisions.reach(use.node, use.unit) for use in uses)

    if all_divided(Divisions(facts, lambda by, _: _is_counted(facts, by))):
        return OF_A_PART
    return None if all_divided(by_size(facts)) else SUM


def weighed_inside(facts: Facts, forwards: Iterable[Function]) -> Iterator[tuple[ast.Call, str]]:
    """The same for losses that models compute in their forward: `F.cross_entropy(logits, y, ignore_index=-1)`."""
    for forward in forwards:
        divides = any(isinstance(getattr(node, "op", None), ast.Div) for node in facts.own(forward))
        made = [node for unit in (forward, *making(forward)) for node in facts.own(unit)]
        for node in made:
            if not isinstance(node, ast.Call) or not any(map(is_loss, called_by_name(facts, node))):
                continue
            given = {keyword.arg: keyword.value for keyword in node.keywords}
            if is_constant(given.get("reduction"), "sum"):
                yield from () if divides else ((node, SUM),)
            elif not is_constant(given.get("reduction"), "none"):
                if why := [told for name, told in _WEIGHING.items() if name in given]:
                    yield node, _UNLIKE.format(why[0])


def _is_counted(facts: Facts, by: ast.expr) -> bool:
    """Whether a number goes by what is in the batch: `(y != PAD).sum()`, `lengths.sum()`, `len(y[mask])`."""
    if counts_chosen(facts, by):
        return True
    is_of_batch = bool(roles(facts.values(by)) & FROM_LOADER) or sums(facts, by, NEAR)
    return is_of_batch and not is_size(facts, by) and not how_often(facts, by)
