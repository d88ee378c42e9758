"""output: one process speaks.

    print(...)                         ->   accelerator.print(...)
    torch.save(state, path)            ->   accelerator.save(state, path)
    writer.add_scalar(...)             ->   if accelerator.is_main_process:
                                                writer.add_scalar(...)
    for x, y in tqdm(loader):          ->   for x, y in tqdm(loader, disable=not accelerator.is_local_main_process):

Files, directories, figures and writers are left to the main process; so are the project's own functions that do nothing
but write. Statements that also run the model or a loop over a loader stay outside: all processes must enter those.
Left alone, and said: what is printed before the accelerator exists, and what both writes and trains.
Safe: on one process that process is the main process.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS, blocks
from migrate.analysis.units import Function, Module, Unit
from migrate.programs.voice import Voice
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG117", "output", optional=True)
def output(conversion: Conversion, draft: Draft) -> None:
    """Give every statement of output to one process."""
    voice = Voice(conversion)
    for unit in _speakers(conversion, draft, voice):
        _block(conversion, draft, voice, _body(unit), unit)
    for bar in voice.bars():
        if conversion.facts.unit(bar) in conversion.units and conversion.access.can_reach(bar):
            draft.add_keyword(bar, "disable", f"not {conversion.access.name(bar)}.is_local_main_process")


def _speakers(conversion: Conversion, draft: Draft, voice: Voice) -> list[Unit]:
    """The units whose output is handled inside: those with the accelerator, and those that do more than speak."""
    units = sorted(conversion.units, key=_line)
    return [unit for unit in units if isinstance(unit, Module) or _speaks_inside(conversion, draft, voice, unit)]


def _speaks_inside(conversion: Conversion, draft: Draft, voice: Voice, unit: Function) -> bool:
    if isinstance(unit.node, ast.Lambda) or voice.is_guarded_outside(unit):
        return False
    if conversion.access.has(unit):
        return True
    if not voice.speaks(unit):
        return False
    if not conversion.access.can_reach(unit.body[0]):
        draft.note(unit.node, f"every process prints or writes what {unit.name}() does", _BY_HAND)
        return False
    return True


_BY_HAND = (
    "put its calls under `with accelerator.main_process_first():`, or its output under accelerator.is_main_process"
)


def _line(unit: Unit) -> int:
    return 0 if isinstance(unit, Module) else unit.node.lineno


def _body(unit: Unit) -> list[ast.stmt]:
    return unit.tree.body if isinstance(unit, Module) else unit.body


def _block(conversion: Conversion, draft: Draft, voice: Voice, body: Iterable[ast.stmt], unit: Unit) -> None:
    run: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            _flush(conversion, draft, voice, run)
            continue
        if _is_output(conversion, voice, statement):
            run.append(statement)
            continue
        _flush(conversion, draft, voice, run)
        if voice.is_print(statement) and _exists(conversion, draft, statement):
            call = statement.value  # type: ignore[attr-defined]
            draft.rewrite(call.func, f"{conversion.access.name(call)}.print")
        for inner in blocks(statement):
            _block(conversion, draft, voice, inner, unit)
    _flush(conversion, draft, voice, run)


def _is_output(conversion: Conversion, voice: Voice, statement: ast.stmt) -> bool:
    if not voice.only_outputs(statement) and not voice.is_save(statement):
        return False
    return not voice.is_collective(statement) and _runs_after(conversion, statement)


def _flush(conversion: Conversion, draft: Draft, voice: Voice, run: list[ast.stmt]) -> None:
    """Guard a run of statements; a run of plain saves has a form of its own."""
    if run and all(voice.is_save(statement) for statement in run):
        for statement in run:
            call = statement.value  # type: ignore[attr-defined]
            draft.rewrite(call.func, f"{conversion.access.name(call)}.save")
    elif len(run) == 1 and isinstance(run[0], ast.If) and not run[0].orelse:
        # One condition more is a smaller change than one more block.
        draft.wrap(run[0].test, f"{{it}} and {conversion.access.name(run[0])}.is_main_process")
    elif run:
        draft.guard(list(run), f"{conversion.access.name(run[0])}.is_main_process")
    run.clear()


def _runs_after(conversion: Conversion, statement: ast.stmt) -> bool:
    """Whether the accelerator exists when the statement runs."""
    spot = conversion.placement.accelerator
    home = conversion.program.home
    if conversion.facts.unit(statement) is not home:
        return True
    return statement.lineno > spot.statement.lineno or (spot.where == "before" and statement is spot.statement)


def _exists(conversion: Conversion, draft: Draft, statement: ast.stmt) -> bool:
    if _runs_after(conversion, statement):
        return True
    draft.note(statement, "every process prints this: it runs before the accelerator exists")
    return False
