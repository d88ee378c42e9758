"""Training loops that take a loader's batches together with rows that a function of the project deals out.

`for expert, played in zip(loader, rollouts.batches(loader.batch_size))`: prepare would give each process its part of
one and all of the other, and what is computed from both would not fit. So every process runs over whole batches, as in
any training without a loader.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Loop

_COUNTS = frozenset({Role.NUMBER, Role.TEXT})


def in_step(facts: Facts, loops: Iterable[Loop]) -> set[ast.AST]:
    """Where the loaders were made whose batches meet such rows."""
    return {origin for loop in loops if isinstance(loop, ast.For) for origin in _zipped(facts, loop.iter)}


def _zipped(facts: Facts, iterated: ast.expr) -> set[ast.AST]:
    for call in ast.walk(iterated):
        if isinstance(call, ast.Call) and "builtins.zip" in facts.called(call):
            made = [facts.loaders(facts.values(argument)) for argument in call.args]
            others = [argument for argument, found in zip(call.args, made, strict=True) if not found]
            if any(_is_dealt_out(facts, other) for other in others):
                return set().union(*made)
    return set()


def _is_dealt_out(facts: Facts, node: ast.expr) -> bool:
    """Whether a generator of the project gives what is iterated, and not only numbers."""
    made = [node, *(facts.once(Sources).given(node).expressions if isinstance(node, ast.Name) else ())]
    targets = [target for each in made if isinstance(each, ast.Call) for target in facts.targets(each)]
    return any(
        isinstance(inner, ast.Yield) and not (target.yields and roles(target.yields) <= _COUNTS)
        for target in targets
        for inner in facts.own(target)
    )


__all__ = ["in_step"]
