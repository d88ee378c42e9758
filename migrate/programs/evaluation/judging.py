"""The project's own loss functions among the models that an evaluation loop calls.

    output = model(x)
    output, y = accelerator.gather_for_metrics((output, y))
    loss = dice(output, y)                          of the whole batch, as on one process

What is not trained, and is given the result of another model, need not see shares of the batch: below the gather each
process computes it of all rows, as it does with all that follows there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import arguments, binds, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.program import Program


def model_calls(facts: Facts, loop: LoopFact) -> list[ast.Call]:
    """The calls of models in a loop, the project's own loss functions among them."""
    return [node for node in walk(loop.node) if isinstance(node, ast.Call) and is_model_call(facts, node)]


def is_model_call(facts: Facts, call: ast.Call) -> bool:
    """Whether a call runs a `forward`."""
    return Role.MODEL in roles(facts.values(call.func)) and not facts.targets(call)


def judging(facts: Facts, program: Program, calls: Sequence[ast.Call]) -> set[ast.Call]:
    """Those of some calls of models that judge what others of them give, and train nothing themselves."""
    trained = [call for call in calls if origins(facts.values(call.func), Role.MODEL) & program.model_origins]
    results = {name for call in trained for name in binds(facts.tree(call).statement(call))}
    return {call for call in calls if call not in trained and any(_is_of(g, results, trained) for g in arguments(call))}


def _is_of(given: ast.expr, results: Collection[str], trained: Collection[ast.Call]) -> bool:
    return any(node in trained or (isinstance(node, ast.Name) and node.id in results) for node in walk(given))
