"""Batch samplers of a program's own that it asks for something by their loader: `loader.batch_sampler.set_epoch(1)`.

The loader that the runtime prepares has that sampler. With Accelerate, on several processes, its batch sampler is one
that deals out the batches of the other, and has nothing of it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.program import Refusal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


def asked_by_loader(
    facts: Facts, units: Collection[Unit], prepared: Collection[ast.AST], package: str
) -> Iterator[Refusal]:
    """What is asked of such a sampler, where Accelerate's loader has another."""
    calls = (use.node for use in facts.calls if use.unit in units) if package == "accelerate" else ()
    for call in calls:
        asked = call.func.value if isinstance(call.func, ast.Attribute) else None
        if not isinstance(asked, ast.Attribute) or asked.attr != "batch_sampler":
            continue
        if not facts.loaders(facts.values(asked.value)).isdisjoint(prepared):
            yield Refusal(
                call,
                "MIG104",
                f"{ast.unparse(asked)} is another object with Accelerate on several processes, which has no "
                f"{call.func.attr}() of the program's",  # type: ignore[attr-defined]
                "give the sampler a name of its own here, or use --target runtime",
            )
            return
