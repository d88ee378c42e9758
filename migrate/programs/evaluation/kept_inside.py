"""What models keep while an evaluation runs them, beside what they give: hooks that collect, attributes that are set.

    layer.register_forward_hook(lambda layer, given, output: features.append(output))
    output = model(x); weights.append(model.attention)

Shared out, each process would find there what came of its own batches, and only what the call gives is gathered.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.reach.forwards import forwards_inside
from migrate.programs.values.hooks import FORWARD, hooked, kept_by, read_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.analysis.facts import Facts


def kept_inside(facts: Facts, calls: Collection[ast.Call]) -> str | None:
    """What the models that some calls run keep of a batch and somebody reads."""
    for filling in hooked(facts, calls, *FORWARD):
        return f"a hook puts what a layer computes into {filling.place}"
    for call in calls:
        for forward in sorted(forwards_inside(facts, call), key=lambda unit: unit.node.lineno):
            for filling, unit in kept_by(facts, forward):
                if not _only_trains(facts, filling.node) and any(read_of(facts, unit, filling)):
                    return f"{unit.name}() of the model keeps {filling.place}, which is read beside what it gives"
    return None


def _only_trains(facts: Facts, node: ast.AST) -> bool:
    """Whether something stands under `if self.training:`."""
    tree = facts.tree(node)
    above = [each for each in tree.up(node) if isinstance(each, ast.If)]
    asked = [each.test for each in above if tree.in_block(tree.statement(node), each.body) is not None]
    return any(
        isinstance(inner, ast.Attribute) and inner.attr == "training" for test in asked for inner in ast.walk(test)
    )
