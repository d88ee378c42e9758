"""backward-call: gradients are computed through the accelerator.

    loss.backward()                     ->   accelerator.backward(loss)
    (a + b).backward(retain_graph=True) ->   accelerator.backward(a + b, retain_graph=True)
    scaler.scale(loss).backward()       ->   accelerator.backward(loss)
    loss.backward(torch.ones_like(loss))   ->   accelerator.backward(loss, gradient=torch.ones_like(loss))
    torch.autograd.backward([a, b])        ->   accelerator.backward(a + b)

Scaling for fp16 and the division by accumulation steps then live in one place. A scaler that is kept by hand goes on
scaling: `accelerator.backward(scaler.scale(loss))` (see MIG106).
A gradient to start from is one number (`minus_one = torch.tensor(-1.0)`), or has the shape of the loss.
The sum of several losses gives the gradients that they give together, to the last bit.
Left alone: a gradient of a fixed size, which would fit the whole batch and not a process's part of it, `inputs=`, and
`torch.autograd.backward` that starts from other gradients than ones; the program is refused.
A hook of a parameter, which does more than multiply, is told: it gets the gradient of one process's batch.
Safe: with full precision and no accumulation the accelerator calls `backward` on the same tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.edits.parts import RECEIVER, argument
from migrate.programs.amp.precision import Becomes
from migrate.programs.training import backwards
from migrate.programs.training.gradient_hooks import bending_hooks
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

_SUM = "if this loss has a value for each sample, they are summed up: N processes average gradients, which divides by N"


_HOOK = "this hook gets the gradient of one process's batch: those of all are averaged once it has changed them"


@rule("MIG105")
def backward_call(conversion: Conversion, draft: Draft) -> None:
    """Rewrite every backward call of the program's loops."""
    scaled = set(conversion.by_hand.mixed.of(Becomes.BACKWARD))
    for call in dict.fromkeys(call for loop in conversion.program.training for call in loop.backwards):
        given = backwards.arguments(call) or {}
        extra = "".join(f", {name}={{{name}}}" for name in given)
        loss = RECEIVER.then(argument(0)) if call in scaled else RECEIVER
        if backwards.sums(conversion.facts, call):
            draft.note(call, _SUM)
        draft.rewrite(call, f"{conversion.access.name(call)}.backward({{loss}}{extra})", loss=loss, **given)
    if conversion.program.training_loaders & conversion.loader_origins:
        for hook in bending_hooks(conversion.facts, conversion.program):
            draft.note(hook, _HOOK, "change p.grad below accelerator.backward(), where it is that of all")
