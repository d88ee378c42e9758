"""Weights that go by a count of batches: of a loss, `loss + min(1, step / 1000) * part`, or of an averaged model.

N processes take N batches in each step, so such a weight takes N times as many samples to get anywhere. Nothing is
changed: a note says so. A training that ends after a number of steps goes by steps as a whole.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.programs.schedule.ends import ends
from migrate.programs.training.loss_parts import LossParts
from migrate.programs.values.counts import Counts, Met
from migrate.programs.values.lengths import Moments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion


@dataclass(frozen=True, slots=True)
class Weight:
    """An expression that counts the steps of a process, and what it weighs."""

    node: ast.expr
    of: str


def weights_by_count(conversion: Conversion) -> Iterator[Weight]:
    """The weights of losses and of parameters in the steps of a training; in a function each once."""
    facts, program = conversion.facts, conversion.program
    moments = Moments(facts, program, conversion.placement.stages)
    is_shared = bool(program.training_loaders & conversion.loader_origins)
    if not is_shared or program.handed is not None or ends(facts, conversion.loops, program, moments):
        return
    scaled = set(conversion.rates.scaled)
    told: set[tuple[Unit, str]] = set()
    counts = Counts(facts, conversion.loops, program, moments)
    for weight in (*_of_losses(conversion), *_of_parameters(conversion, counts)):
        before = len(counts.meetings)
        counts.used(weight.node)
        met = (each for each in counts.meetings[before:] if each.met is Met.NUMBER)
        key = facts.unit(weight.node), ast.unparse(weight.node)
        if any(scaled.isdisjoint(each.carriers) for each in met) and key not in told:
            told.add(key)
            yield weight


def _of_losses(conversion: Conversion) -> Iterator[Weight]:
    """`beta * distance`: one side is computed from a batch, the other is not."""
    facts, program = conversion.facts, conversion.program
    parts = (part for loop in program.training for part in LossParts(facts, loop, program.model_origins).each())
    for node in parts:
        for side, other in _factors(node):
            if roles(facts.values(other)) & FROM_LOADER and not roles(facts.values(side)) & FROM_LOADER:
                yield Weight(side, "the loss")


def _of_parameters(conversion: Conversion, counts: Counts) -> Iterator[Weight]:
    """`(1 - tau) * q.data`, `.add_(q.data, alpha=1 - tau)`, `.lerp_(q, 1 - tau)`, in a step."""
    facts = conversion.facts
    for node in (node for unit in conversion.ordered_units for node in facts.own(unit)):
        given = [side for side, other in _factors(node) if _is_parameter(facts, other)]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            if _is_parameter(facts, node.args[0]):
                given += [keyword.value for keyword in node.keywords if keyword.arg in ("alpha", "weight")]
                given += node.args[1:2] if node.func.attr == "lerp_" else []
        yield from (Weight(side, "parameters") for side in given if counts.is_per_batch(node))


def _factors(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return [(node.left, node.right), (node.right, node.left)] if isinstance(node, ast.BinOp) and is_product else []


def _is_parameter(facts: Facts, node: ast.expr) -> bool:
    """`q`, `q.data`, `q.detach()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
        node = node.func.value
    elif isinstance(node, ast.Attribute) and node.attr == "data":
        node = node.value
    return Role.PARAMETERS in roles(facts.values(node))
