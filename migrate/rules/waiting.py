"""waiting: in every step, a loop waits for the TPU to give Python a number.

    for images, labels in loader:
        ...
        running += loss.item()

A TPU computes while Python goes on; `.item()`, `.tolist()`, `.cpu()`, `.numpy()` and `float(loss)` wait until all is
done, and with torch_xla they end what is compiled as one. On a GPU this costs little, so it is told where a TPU is
meant: with `--for tpu`, or in programs that import torch_xla or torch_tpu. Told once for each loop over batches, with
the first such line; what is read every so many steps (`if step % 100 == 0:`) is not. Nothing is edited.
What to do: keep the tensor (`running += loss.detach()`), and read it after the loop, or every N steps.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.training.waits import Waits
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG125", optional=True)
def waiting(conversion: Conversion, draft: Draft) -> None:
    """Say where each loop waits."""
    if not conversion.program.is_for_tpu:
        return
    facts, program = conversion.facts, conversion.program
    for loop, calls in Waits(facts, (*program.training, *program.evaluation)).found().items():
        first, *others = calls
        here = facts.file(first).path
        lines = [_line(facts.file(call).path, here, call.lineno) for call in others]
        also = f", and again at {', '.join(lines)}" if lines else ""
        draft.note(
            first,
            f"{_what(first)} waits for the TPU in every step of the loop at line {loop.node.lineno}{also}",
            "keep the tensor (`total += loss.detach()`), and read it after the loop or every N steps",
        )


def _what(call: ast.Call) -> str:
    return f".{call.func.attr}()" if isinstance(call.func, ast.Attribute) else ast.unparse(call)


def _line(path: str, here: str, line: int) -> str:
    return f"line {line}" if path == here else f"{path}:{line}"
