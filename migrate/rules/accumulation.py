"""accumulation: the accelerator counts the micro-steps of gradient accumulation.

    loss = loss / k                                      ->   (gone: accelerator.backward divides)
    if (i + 1) % k == 0 or i + 1 == len(loader):         ->   with accelerator.accumulate(model):
    with model.no_sync():                                ->   with accelerator.no_sync(model):

The body of the loop goes into the context from the first call of the model on, and `gradient_accumulation_steps=k` to
the accelerator. Where a window does more than clip, step and clear, it stays under `if accelerator.sync_gradients:`.
Kept by hand, with the reason: windows without the last one of an epoch (their gradients go into the next epoch, and
`accumulate` would step), micro-batches, counts that change, losses that are used after the division, a scheduler that
is prepared and stepped in every micro-step (it would wait for the end of a window). That is right on several processes,
since the average of sums is the sum of averages; gradients are exchanged in every micro-step.
Safe: backward divides by the same number, and the optimizer steps after the same batches.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.training import CLIPPING
from migrate.analysis.roles import Role, origins
from migrate.edits.parts import LEFT, RECEIVER
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.programs.training.windows import Window
    from migrate.rules.draft import Draft

_WAY_OUT = "this is right on several processes, too; accelerator.accumulate(model) would exchange gradients less often"


@rule("MIG108")
def accumulation(conversion: Conversion, draft: Draft) -> None:
    """Put the loops whose windows fit into `accumulate`, and say why others stay."""
    for node, why in conversion.by_hand.accumulated.kept:
        draft.note(node, f"the program goes on accumulating gradients by hand: {why}", _WAY_OUT)
    for window in conversion.by_hand.accumulated.windows:
        _write(conversion, draft, window)
    for use in conversion.facts.method_calls("no_sync"):
        models = origins(conversion.facts.receiver(use.node), Role.MODEL)
        if use.unit in conversion.units and models & conversion.program.model_origins:
            draft.rewrite(use.node, f"{conversion.access.name(use.node)}.no_sync({{model}})", model=RECEIVER)


def _write(conversion: Conversion, draft: Draft, window: Window) -> None:
    accelerator = conversion.access.name(window.test)
    block = conversion.facts.tree(window.test).block(window.test)
    inside = block[block.index(window.first) : block.index(window.test) + 1]
    draft.wrap_block(inside, f"with {accelerator}.accumulate({', '.join(window.models)})")
    if window.division.statement is not None:
        draft.remove(window.division.statement)
    if window.division.quotient is not None:
        draft.rewrite(window.division.quotient, "{loss}", loss=LEFT)
    _drop_counter(draft, window)
    if not window.is_plain:
        draft.rewrite(window.test.test, f"{accelerator}.sync_gradients")
        return
    draft.unwrap(window.test)
    for statement in window.test.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and conversion.facts.called(call) & CLIPPING.keys():
            draft.guard([statement], f"{accelerator}.sync_gradients")


def _drop_counter(draft: Draft, window: Window) -> None:
    """`for i, batch in enumerate(loader)` where only the window asked for the number."""
    loop = window.loop.node
    assert isinstance(loop, ast.For)
    is_pair = isinstance(loop.target, ast.Tuple) and len(loop.target.elts) == 2
    if window.is_counter_read or not is_pair or not isinstance(loop.iter, ast.Call):
        return
    if isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "enumerate":
        assert isinstance(loop.target, ast.Tuple)
        text = ast.unparse(loop.target.elts[1])
        draft.rewrite(loop.target, text[1:-1] if isinstance(loop.target.elts[1], ast.Tuple) else text)
        draft.unwrap_call(loop.iter)
