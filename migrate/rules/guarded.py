"""guarded-collective: only some processes come to what all must enter, and wait there for ever.

    if accelerator.is_main_process:
        values = accelerator.gather(values)      # <- flagged: the other processes never come
        print(values.mean())

Asked of programs that use an accelerator already, and of every result of a conversion before it is written. All
processes must enter the accelerator's `gather`, `reduce`, `backward`, `prepare`, `wait_for_everyone` and their like,
`torch.distributed`'s collectives, a prepared model's call, the loop over a prepared loader, the step of a prepared
optimizer, and `compute()` of torchmetrics. Places where only some come: branches on the main process, on a rank or a
local rank; what follows a `return`, `break` or `continue` in such a branch; functions decorated with
`on_main_process`; what a function does that is called in such a place; the body of `main_process_first()`, where
processes come one after the other.

What may be there is the model inside: `accelerator.unwrap_model(model)`. Barriers of which each side passes one in the
same function meet, and are not flagged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.processes.guarded import guarded
from migrate.report.model import Finding, Kind
from migrate.rules.draft import finding
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

_WAY_OUT = "do it where all processes come, and give what comes out a name that can be used here"


@rule("MIG002")
def guarded_collective(conversion: Conversion, draft: Draft) -> None:
    """The findings are made once for all files (`faults`); there is nothing to edit."""


def faults(facts: Facts) -> Iterator[Finding]:
    """A finding for each place."""
    for one in guarded(facts):
        message = f"{one.why}, and all processes must enter {one.joint.what}"
        yield finding(facts, one.joint.node, guarded_collective.code, message, _WAY_OUT, Kind.FAULT)
