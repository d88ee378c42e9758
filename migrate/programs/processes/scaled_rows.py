"""Embeddings that scale the rows they look up, `nn.Embedding(n, 8, max_norm=1.0)`, where each process looks up others.

PyTorch writes the scaled rows into the weights in each forward. DistributedDataParallel shares gradients, not weights:
what one process has scaled stays as it was on the others.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import argument_at, is_none
from migrate.programs.chance.seeds import modules_of
from migrate.programs.processes.limited_tables import limits_of_base, limits_told, tables
from migrate.programs.processes.replicas import differs
from migrate.programs.program import Refusal
from migrate.programs.reach.built import layers_of
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

#: Where each of them takes `max_norm`.
_LOOKUPS = {
    "torch.nn.Embedding": 3,
    "torch.nn.EmbeddingBag": 2,
    "torch.nn.functional.embedding": 3,
    "torch.nn.functional.embedding_bag": 3,
}


def scaled_rows(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Embeddings of which each process would scale the rows of its own share."""
    if not program.training_loaders and not differs(facts, loops, program):
        return
    modules = modules_of(facts, program)
    found: list[ast.AST] = [
        use.node
        for name, position in _LOOKUPS.items()
        for use in facts.calls_to((name,))
        if use.unit.module in modules and _is_set(facts, argument_at(use.node, position, "max_norm"))
    ]
    told = (limit for cls in tables(facts) if cls.module in modules for limit in limits_told(facts, cls) or ())
    found = found or [limit for limit in told if _is_set(facts, limit)]  # else it is said where that is handed on
    for node in layers_of(facts, program, modules, found):
        yield Refusal(
            node,
            "MIG122",
            "max_norm scales the rows that the model looks up: each process would scale those of its own share, and "
            "nobody shares them",
            "leave max_norm out, and scale all rows after optimizer.step(): weight.data.renorm_(2, 0, max_norm)",
        )


def _is_set(facts: Facts, given: ast.expr | None, seen: frozenset[ast.expr] = frozenset()) -> bool:
    """Whether an argument may be something else than the None that its callers hand on."""
    if given is None or is_none(given) or given in seen:
        return False
    if (limits := limits_of_base(facts, given)) is not None:
        return any(_is_set(facts, each, seen | {given}) for each in limits)
    handed = facts.once(Sources).given(given)
    return not handed.complete or any(_is_set(facts, each, seen | {given}) for each in handed.expressions)
