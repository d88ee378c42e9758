"""Which loaders' batches must stay on the CPU until the program moves them itself, and why.

What a program does with a batch before it moves it was written for the CPU: it meets tensors that are there, goes
through NumPy, draws random numbers, is pinned. Such a loader is prepared without a device, and the program's own moves
go to the accelerator's. That is always right; only where nothing of the kind happens the moves can go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.argument import Argument
from migrate.programs.devices import is_move
from migrate.programs.outsiders import units_of
from migrate.programs.walk import Walk
from migrate.programs.whereabouts import Need, Reason

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Mapping

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program


def on_host(facts: Facts, program: Program) -> Mapping[ast.AST, Need]:
    """Where the loaders were made whose batches stay on the CPU, each with the first reason."""
    if not moves_anything(facts, program):
        return {}
    found: dict[ast.AST, Need] = {}
    for loaders, needs in _needs(facts, program, makes_on_device=False):
        for loader in loaders if needs else ():
            found.setdefault(loader, needs[0])
    for named in program.loaders:  # prepare places what has one name in one way
        need = next((found[origin] for origin in named.origins if origin in found), None)
        if need is not None:
            found.update(dict.fromkeys(named.origins, need))
    return found


def stays_on_cpu(facts: Facts, loops: Loops, program: Program) -> Iterator[Argument]:
    """`cpu=True` for a program that knows no device and puts its batches together with tensors made elsewhere."""
    if met_on_cpu(facts, program) is not None:
        yield Argument("cpu", "True")


def met_on_cpu(facts: Facts, program: Program) -> Need | None:
    """Where a batch meets a tensor that stays on the CPU, in a program that was written without any device."""
    if moves_anything(facts, program):
        return None
    found = (need for _, needs in _needs(facts, program, makes_on_device=True) for need in needs)
    return next((need for need in found if need.reason in (Reason.MIXED, Reason.PINNED)), None)


def moves_anything(facts: Facts, program: Program) -> bool:
    """Whether a program was written for a device at all."""
    units = units_of(facts, program)
    return any(use.unit in units and is_move(facts, use.node) for use in facts.calls)


def _needs(facts: Facts, program: Program, *, makes_on_device: bool) -> Iterator[tuple[frozenset[ast.AST], list[Need]]]:
    for loop in (*program.training, *program.evaluation):
        loaders = frozenset(loop.loaders)
        yield loaders, Walk(facts, loaders, makes_on_device).through(loop)
