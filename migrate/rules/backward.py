"""backward-call: gradients are computed through the accelerator.

    loss.backward()                     ->   accelerator.backward(loss)
    (a + b).backward(retain_graph=True) ->   accelerator.backward(a + b, retain_graph=True)
    scaler.scale(loss).backward()       ->   accelerator.backward(loss)

Scaling for fp16 and the division by accumulation steps then live in one place. A scaler that is kept by hand goes on
scaling: `accelerator.backward(scaler.scale(loss))` (see MIG106).
Left alone: `backward(gradient=...)` and `torch.autograd.backward`, which have no counterpart; the program is refused.
Safe: with full precision and no accumulation the accelerator calls `backward` on the same tensor.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.edits.parts import RECEIVER, argument
from migrate.programs.precision import Becomes
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG105", "backward-call")
def backward_call(conversion: Conversion, draft: Draft) -> None:
    """Rewrite every backward call of the program's loops."""
    scaled = set(conversion.by_hand.mixed.of(Becomes.BACKWARD))
    for call in dict.fromkeys(call for loop in conversion.program.training for call in loop.backwards):
        extra = "".join(f", {ast.unparse(keyword)}" for keyword in call.keywords)
        loss = RECEIVER.then(argument(0)) if call in scaled else RECEIVER
        draft.rewrite(call, f"{conversion.access.name(call)}.backward({{loss}}{extra})", loss=loss)
