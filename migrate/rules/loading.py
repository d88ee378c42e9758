"""loading: checkpoints of the original still load.

    model.load_state_dict(torch.load(path))   ->   model.load_state_dict(torch.load(path, map_location="cpu"))
    (after prepare)                           ->   accelerator.unwrap_model(model).load_state_dict(...)

Keys stay plain. Without map_location every process would load onto the GPU that the file was written from.
Safe: load_state_dict copies into the parameters where they are.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG116", "loading", optional=True)
def loading(conversion: Conversion, draft: Draft) -> None:
    """Load what goes into load_state_dict onto the CPU first."""
    facts = conversion.facts
    loaded = {
        value.origin
        for use in facts.method_calls("load_state_dict")
        if use.unit in conversion.units
        for argument in use.node.args
        for value in facts.values(argument)
        if value.role is Role.CHECKPOINT
    }
    for use in facts.calls:
        if use.node not in loaded or use.unit not in conversion.units or "torch.load" not in facts.called(use.node):
            continue
        if len(use.node.args) > 1 or any(keyword.arg in ("map_location", None) for keyword in use.node.keywords):
            continue
        if Role.CHECKPOINT in roles(facts.values(use.node)):
            draft.add_keyword(use.node, "map_location", '"cpu"')


_ = ast
