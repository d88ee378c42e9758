"""Which loaders' batches must stay on the CPU until the program moves them itself, and why.

What a program does with a batch before it moves it was written for the CPU: it meets tensors that are there, goes
through NumPy, draws random numbers, is pinned. Such a loader is prepared without a device, and the program's own moves
go to the accelerator's. That is always right; only where nothing of the kind happens the moves can go.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.known.tensors import HOST_PREFIXES
from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import blocks, own_expressions, writes
from migrate.programs.device.defaults import defaults
from migrate.programs.device.devices import is_move
from migrate.programs.device.scattered import split_models
from migrate.programs.device.tour import strangers
from migrate.programs.device.walk import Walk
from migrate.programs.device.whereabouts import Handed, Need, Reason, Where
from migrate.programs.home.around import around
from migrate.programs.reach.outsiders import run_by, units_of
from migrate.programs.values.accumulators import statements_after

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program

#: What is put on a device.
_PLACED = FROM_LOADER | {Role.MODEL}
#: What joins a list of batches where these are.
_JOINING = ("torch.",)


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What the batches of a program need."""

    on_host: Mapping[ast.AST, Need]  # where loaders were made whose batches stay on the CPU, each with the first reason
    casts: tuple[ast.Call, ...]  # of batches, to types of tensors that are on the CPU
    handed: tuple[Handed, ...]  # to models in DataParallel, which brings it to the device


def whereabouts(facts: Facts, program: Program) -> Whereabouts:
    """Which batches stay on the CPU, and which casts would bring the others back there."""
    found: dict[ast.AST, Need] = {}
    is_moved = moves_anything(facts, program)
    walks = list(_walks(facts, program, makes_on_device=not is_moved))
    for walk in walks if is_moved else ():
        for loader in walk.loaders if walk.needs else ():
            found.setdefault(loader, walk.needs[0])
    for named in program.loaders:  # prepare places what has one name in one way
        need = next((found[origin] for origin in named.origins if origin in found), None)
        if need is not None:
            found.update(dict.fromkeys(named.origins, need))
    casts = (call for walk in walks if not walk.loaders & found.keys() for call in walk.casts)
    handed = (each for walk in walks for each in walk.handed) if is_moved else ()
    return Whereabouts(found, tuple(dict.fromkeys(casts)), tuple(handed))


def left_on_cpu(facts: Facts, loops: Loops, program: Program, placed: Collection[ast.AST]) -> list[ast.expr]:
    """Where tensors on the CPU meet what is prepared, in a program over loaders that was written without any device."""
    if moves_anything(facts, program) or not program.training_loaders or _names_device(facts, program):
        return []
    if _may_move(facts, program):
        return []  # and what it names may be a GPU, which these are brought to
    return strangers(facts, loops, program, placed)


def _may_move(facts: Facts, program: Program) -> bool:
    """`model.to(self.config.device)`: whether models or batches are put where nobody knows, which is a device's name.

    What a library's settings say of it, or those of an object whose class is chosen by its name, is not followed.
    """
    units = _units(facts, program)
    puts = (use.node for use in facts.calls if use.unit in units and getattr(use.node.func, "attr", "") == "to")
    placing = (node for node in puts if node.args and roles(facts.receiver(node)) & _PLACED and not facts.targets(node))
    given = (node.args[0] for node in placing)
    return any(not facts.names(each) and roles(facts.values(each)) <= {Role.UNKNOWN, Role.METHOD} for each in given)


def _names_device(facts: Facts, program: Program) -> bool:
    """Whether a program makes anything on a device that it names."""
    units = _units(facts, program)
    return any(use.unit in units and any(k.arg == "device" for k in use.node.keywords) for use in facts.calls)


def moves_anything(facts: Facts, program: Program) -> bool:
    """Whether a program was written for a device at all; also by what it leaves to functions that stay as they are."""
    units = _units(facts, program) | run_by(facts, program)
    is_moved = any(use.unit in units and is_move(facts, use.node) for use in facts.calls_anywhere)
    return is_moved or bool(defaults(facts, program))


def _units(facts: Facts, program: Program) -> set[Unit]:
    """The units of a program, with the code around its object, which may move what it hands over."""
    units = units_of(facts, program)
    return units | around(facts, program, units).keys()


def _walks(facts: Facts, program: Program, *, makes_on_device: bool) -> Iterator[Walk]:
    split = frozenset(split_models(facts, units_of(facts, program)))
    for loop in (*program.training, *program.evaluation):
        walk = Walk(facts, frozenset(loop.loaders), makes_on_device, split=split).through(loop)
        walk.needs += _given_away(facts, loop, walk)
        yield walk


def _given_away(facts: Facts, loop: LoopFact, walk: Walk) -> Iterator[Need]:
    """Where a library is given, after a loop, the batches that were put into a list as they are.

    NumPy takes none of a GPU, and what PyTorch makes of such a list, `torch.cat(labels)`, meets what was brought to the
    CPU.
    """
    raw = {name for name, place in walk.names.items() if place is Where.RAW}
    batch = writes(loop.node.target) if isinstance(loop.node, (ast.For, ast.AsyncFor)) else set()
    for call, held in _read_in(statements_after(facts, loop.node), raw):
        given = {ast.unparse(each) for each in call.args if isinstance(each, (ast.Name, ast.Attribute))} & held
        called = facts.called(call)
        if (given and any(name.startswith(HOST_PREFIXES) for name in called)) or (
            given - batch and any(name.startswith(_JOINING) for name in called)
        ):
            yield Need(call, Reason.UNSEEN)


def _read_in(statements: Iterable[ast.stmt], names: set[str]) -> Iterator[tuple[ast.Call, set[str]]]:
    """The calls of some statements, each with those of some names that nothing has given another value by then."""
    held = set(names)
    for statement in statements:
        if not held:
            return
        expressions = [*own_expressions(statement)]
        yield from ((call, held) for part in expressions for call in ast.walk(part) if isinstance(call, ast.Call))
        inside = held - {name for part in expressions for name in writes(part)}
        for block in blocks(statement):
            yield from _read_in(block, inside)
        held = held - writes(statement)
