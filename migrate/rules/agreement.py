"""agreement: what one process would decide by its own batch, all processes decide together.

    if torch.isnan(loss):   ->   if accelerator.gather(torch.isnan(loss)).any():
    if loss.item() > 100:   ->   if any(accelerator.gather_for_metrics([loss.item() > 100])):

A process that leaves a step alone (`continue`, `break`, `return`), or takes it alone, lets the others wait in backward
for ever. All leave it as soon as one of them would; all take it only if each of them would (`.all()`). Closures of an
optimizer that decides by the loss (LBFGS) return the mean over the processes:

    return loss   ->   return accelerator.reduce(loss.detach(), reduction="mean")

Refused: a decision that not all processes come to, a schedule or a checkpoint by one process's last batch.
Safe: on one process the condition and the loss are what they were.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG122", "agreement")
def agreement(conversion: Conversion, draft: Draft) -> None:
    """Rewrite the conditions, and what closures return."""
    for each in conversion.agreements:
        accelerator = conversion.access.name(each.test)
        if each.is_tensor:
            draft.wrap(each.test, f"{accelerator}.gather({{it}}).{each.word}()")
        else:
            value = "{it}" if _is_bool(each.test) else "bool({it})"
            draft.wrap(each.test, f"{each.word}({accelerator}.gather_for_metrics([{value}]))")
    for loss in conversion.returned_losses:
        accelerator = conversion.access.name(loss)
        draft.wrap(loss, draft.quoted(loss, f"{accelerator}.reduce({{it}}.detach(), reduction='mean')"))


def _is_bool(test: ast.expr) -> bool:
    """Whether a test is True or False as it is written, and neither a tensor nor another value with a truth."""
    if isinstance(test, ast.BoolOp):
        return all(_is_bool(value) for value in test.values)
    if isinstance(test, ast.Compare):
        return any(_is_number(side) for side in (test.left, *test.comparators))
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def _is_number(node: ast.expr) -> bool:
    """`loss.item()`: a number of Python."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"
