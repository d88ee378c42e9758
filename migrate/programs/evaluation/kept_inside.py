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
from migrate.programs.values.states_kept import only_trains

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
                if not only_trains(facts, filling.node) and any(read_of(facts, unit, filling)):
                    return f"{unit.name}() of the model keeps {filling.place}, which is read beside what it gives"
    return None
