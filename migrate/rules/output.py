"""output: one process speaks.

    print(...)                         ->   accelerator.print(...)
    writer.add_scalar(...)             ->   if accelerator.is_main_process:
                                                writer.add_scalar(...)
    for x, y in tqdm(loader):          ->   for x, y in tqdm(loader, disable=not accelerator.is_local_main_process):
    logging.info(...)                  ->   (as it was, after: if not accelerator.is_main_process:
                                                                   logging.disable(logging.INFO))

Files, directories, figures and writers are left to the main process; so are the project's own functions that do nothing
but write. Statements that also run the model or a loop over a loader stay outside: all processes must enter those.
Left alone, and said: what is printed before the accelerator exists, what both writes and trains, and files that stay
open for writing.
Safe: on one process that process is the main process.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.speech import speech
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

_BY_HAND = "put its calls under `with accelerator.main_process_first():`, or what it writes under is_main_process"


@rule("MIG117", "output", optional=True)
def output(conversion: Conversion, draft: Draft) -> None:
    """Give every statement of output to one process."""
    said = speech(conversion)
    for call in said.prints:
        draft.rewrite(call.func, f"{conversion.access.name(call)}.print")
    for run in said.guarded:
        _guard(conversion, draft, run)
    for bar in said.bars:
        draft.add_keyword(bar, "disable", f"not {conversion.access.name(bar)}.is_local_main_process")
    if said.logs:
        _silence(conversion, draft, said.logs[0])
    for statement in said.early:
        draft.note(statement, "every process prints this: it runs before the accelerator exists")
    for unit in said.unreached:
        draft.note(unit.node, f"every process prints or writes what {unit.name}() does", _BY_HAND)
    for call in said.opened:
        draft.left(
            call,
            "every process opens this file and writes into it",
            "let the others write nowhere: open(path if accelerator.is_main_process else os.devnull, ...)",
        )
    for statement in said.mixed:
        draft.left(
            statement,
            "this writes, and it runs the model, which all processes must do together",
            "compute first, under a name, and write in a statement of its own; then run migrate again",
        )


def _silence(conversion: Conversion, draft: Draft, first: ast.Call) -> None:
    """One voice for the standard library's logging: the other processes only report trouble."""
    home, spot = conversion.program.start, conversion.placement.accelerator
    assert home is not None
    if "logging" not in home.module.names:
        draft.note(first, "every process logs this", "call logging.disable(logging.INFO) where not is_main_process")
        return
    code = f"if not {conversion.access.of(home)}.is_main_process:\n    logging.disable(logging.INFO)"
    if spot.where == "before":
        draft.before(spot.statement, code, late=True)
    else:
        draft.after(spot.statement, code, late=True)


def _guard(conversion: Conversion, draft: Draft, run: list[ast.stmt]) -> None:
    """Put neighbours under a guard; a single `if` gets one condition more, which is the smaller change."""
    test = f"{conversion.access.name(run[0])}.is_main_process"
    if len(run) == 1 and isinstance(run[0], ast.If) and not run[0].orelse:
        draft.wrap(run[0].test, f"{{it}} and {test}")
    else:
        draft.guard(run, test)
