"""What is said of passes over loaders that train, where a training may begin in eval mode.

A part of the rule for metrics, which tells evaluations apart.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.evaluation.left_in_eval import begun_as_training, left_in_eval
from migrate.programs.values.lengths import measured

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


def say_training(conversion: Conversion, draft: Draft) -> None:
    """A training that may begin in eval mode says that it is one."""
    for loop, over in left_in_eval(conversion.facts, conversion.program, conversion.loader_origins):
        accelerator, tree = conversion.access.name(loop.node), conversion.facts.tree(loop.node)
        for loader in over:
            above = tree.parents[loader]
            if isinstance(above, ast.Call) and measured(conversion.facts, above):
                draft.rewrite(above.func, f"{accelerator}.steps_per_epoch")
            else:
                draft.wrap(loader, f"{accelerator}.training_batches({{it}})")
    for call, loaders in begun_as_training(conversion.facts, conversion.program).items():
        for loader in loaders:
            draft.wrap(loader, f"{conversion.access.name(call)}.training_batches({{it}})")
