"""saving: checkpoints are written once, by the main process, in the format they had.

    torch.save(model.state_dict(), path)   ->   accelerator.save(accelerator.unwrap_model(model).state_dict(), path)

The keys are plain, so the original's model class loads the file. A save among other statements that only write goes
with them under `if accelerator.is_main_process:` (see MIG117); what is asked of the model is asked of the one inside
the wrapper (see MIG119). Safe: accelerator.save calls torch.save.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.output.heard import speech
from migrate.rules.imports import drop_unused
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG115", optional=True)
def saving(conversion: Conversion, draft: Draft) -> None:
    """Rewrite `torch.save` where it stands by itself."""
    rewritten: list[ast.expr] = []
    for call in speech(conversion).saves:
        draft.rewrite(call.func, f"{conversion.access.name(call)}.save")
        rewritten.append(call.func)
    drop_unused(conversion, draft, rewritten)
