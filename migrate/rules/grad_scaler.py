"""grad-scaler: the accelerator scales the loss of fp16 training.

    scaler = GradScaler()                   ->   (gone; Accelerator(mixed_precision="fp16"))
    scaler = GradScaler(enabled=args.amp)   ->   (gone; Accelerator(mixed_precision="fp16" if args.amp else "no"))
    scaler.step(optimizer)                  ->   optimizer.step()
    scaler.update()                         ->   (gone)
    scaler.unscale_(optimizer)              ->   (gone before a clipping call, which unscales)
    scaler.unscale_(optimizer)              ->   accelerator.unscale_gradients(optimizer)
    train(model, optimizer, scaler)         ->   train(model, optimizer, accelerator)
    scaler.state_dict()                     ->   accelerator.scaler.state_dict() if accelerator.scaler else {}
    if scaler is not None:                  ->   if accelerator.scaler is not None:

apex (`amp.initialize`, `with amp.scale_loss(...)`, `amp.master_params`) gives way in the same way, with its imports and
the tests for them; at its levels O2 and O3, which keep the parameters in float16, it is refused.

Branches with and without mixed precision that say the same become one. As with the original, the CPU computes in full
precision. A prepared model computes in low precision wherever it is called; a note names the calls where the original
did not. Kept by hand, with the reason: several scalers, scalers with settings of their own or for the CPU, clipping of
scaled gradients, a scheduler that is prepared (MIG118) and would wait for a step that overflows, anything that is not
understood. That is right on several processes, too: what is averaged are scaled gradients, and an overflow on one
process reaches all.
Safe: the scale is that of the original, step by step.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import amp
from migrate.edits.parts import argument
from migrate.programs.amp.handed import call_of
from migrate.programs.amp.precision import Becomes
from migrate.programs.training.numerics import IN_HALF, WAY_OUT, halved_by_choice
from migrate.rules.imports import drop_unused
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

_IMPORTED = amp.AUTOCAST | amp.CUDA_SCALERS | amp.NO_CONTEXTS
_RIGHT = "this is right on several processes, too"
#: What an expression becomes; `{it}` is the accelerator.
_EXPRESSIONS = {
    Becomes.STATE: "{it}.scaler.state_dict() if {it}.scaler else {{}}",
    Becomes.SCALE: "{it}.scaler.get_scale() if {it}.scaler else 1.0",
    Becomes.SKIPPED: "{it}.optimizer_step_was_skipped",
    Becomes.NOT_SKIPPED: "not {it}.optimizer_step_was_skipped",
    Becomes.ITSELF: "{it}.scaler",
}


@rule("MIG106")
def grad_scaler(conversion: Conversion, draft: Draft) -> None:
    """Take the scaler out, or say why it stays."""
    mixed = conversion.by_hand.mixed
    for node, why in mixed.kept:
        draft.note(node, f"the program goes on scaling its losses by hand: {why}", _RIGHT)
    for node, becomes in mixed.uses:
        _write(conversion, draft, node, becomes)
    for node, is_body in mixed.folds:
        draft.fold(node, keep="body" if is_body else "orelse")
    for node, text in mixed.told:
        draft.note(node, text)
    for call in mixed.outside:
        draft.note(call, "the model computes in float16 here, too, once it is prepared", "as Accelerate does")
    for call in halved_by_choice(conversion.facts, conversion.program):
        draft.note(call, f"{IN_HALF}, where this is chosen", WAY_OUT)
    _drop_imports(conversion, draft)


def _drop_imports(conversion: Conversion, draft: Draft) -> None:
    """The imports that only the scaler and the contexts needed."""
    facts, mixed = conversion.facts, conversion.by_hand.mixed
    gone = (inner for node in (*mixed.of(Becomes.GONE), *mixed.contexts) for inner in ast.walk(node))
    calls = [node for node in gone if isinstance(node, ast.Call)]
    drop_unused(conversion, draft, [call.func for call in calls if facts.called(call) & _IMPORTED])


def _write(conversion: Conversion, draft: Draft, node: ast.AST, becomes: Becomes) -> None:
    if becomes is Becomes.BACKWARD:
        return  # written with the other backward calls
    if becomes is Becomes.CLIPPED:
        becomes = Becomes.UNSCALED if conversion.unscales_apart else Becomes.GONE
    if becomes is Becomes.GONE:
        draft.remove(conversion.facts.tree(node).statement(node))
        return
    if becomes is Becomes.TAKEN:
        assert isinstance(node, ast.arg)
        draft.remove_parameter(node)
        return
    assert isinstance(node, ast.expr)
    if becomes is Becomes.HANDED:
        call, parent = call_of(conversion.facts, node), conversion.facts.tree(node).parents[node]
        assert call is not None
        draft.remove_argument(call, parent if isinstance(parent, ast.keyword) else node)
        return
    if becomes is Becomes.STEP:
        draft.rewrite(node, "{optimizer}.step()", optimizer=argument(0))
        return
    it = conversion.access.name(node)
    if becomes is Becomes.UNSCALED:
        draft.rewrite(node, f"{it}.unscale_gradients({{optimizer}})", optimizer=argument(0))
    elif becomes is Becomes.LOADED:
        draft.rewrite(node, f"{it}.scaler.load_state_dict({{state}})", state=argument(0))
        draft.guard([conversion.facts.tree(node).statement(node)], f"{it}.scaler")
    else:
        draft.rewrite(node, _EXPRESSIONS[becomes].format(it=it))
