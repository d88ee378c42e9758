"""Programs without a loader that speak of no device: the accelerator stays on the CPU, where all their tensors are.

Nothing says which of them would have to follow the model.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.analysis.syntax import last_line
from migrate.programs.argument import CPU, Argument
from migrate.programs.device.host import moves_anything
from migrate.programs.processes.replicas import ON_CPU, without_loader

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program


def without_device(facts: Facts, loops: Loops, program: Program) -> Iterator[Argument]:
    """`cpu=True` where no tensor is ever moved: which ones would have to follow the model is not seen."""
    modules = facts.imported(program.module) | {program.module} | {loop.unit.module for loop in program.training}
    if not without_loader(program) or moves_anything(facts, program):
        return
    if not any(_names_device(facts, module, modules) for module in modules):
        yield Argument(CPU, ON_CPU)


def _names_device(facts: Facts, module: Module, modules: Collection[Module]) -> bool:
    """Whether a file of a program speaks of a device, other than in functions that none of them names."""
    lines = module.file.content.splitlines()
    if not _speaks_of_device(lines):
        return False
    for unit in facts.functions:
        if unit.module is not module or unit.parent is not None or unit.owner is not None:
            continue
        word = re.compile(rf"\b{unit.name}\b".encode())
        if not isinstance(unit.node, ast.Lambda) and sum(len(word.findall(m.file.content)) for m in modules) == 1:
            first, last = unit.node.lineno - 1, last_line(unit.node)
            lines[first:last] = [b""] * (last - first)
    return _speaks_of_device(lines)


def _speaks_of_device(lines: list[bytes]) -> bool:
    text = _PUTS_NOTHING.sub(b"", b"\n".join(lines))
    return b"device" in text or b"cuda" in text


#: What seeds a GPU, or asks for one, puts nothing there.
_PUTS_NOTHING = re.compile(
    rb"cuda\.(manual_seed(_all)?|is_available|device_count|seed(_all)?|empty_cache|synchronize)\b|backends\.cud\w+"
)
