"""Programs that put everything on the CPU by name: the accelerator stays there, whatever the machine has.

    def train(x, y, device=torch.device("cpu")):
        net = Net().to(device)
        loss = criterion(net(x.to(device)), y.to(device))

No caller says anything else. On the GPU of an accelerator the model would meet tensors that stay where they were put.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.analysis.units import Function
from migrate.programs.argument import CPU, Argument
from migrate.programs.device.devices import device_argument, is_move
from migrate.programs.device.the_cpu import is_cpu, only_cpu
from migrate.programs.processes.replicas import ON_CPU
from migrate.programs.reach.outsiders import units_of
from migrate.programs.values.fetches import own_class
from migrate.programs.values.users import is_users, names_device

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

#: A program that holds one of these may use another device, in whatever way; what only seeds or asks for it does not.
_OTHERS = re.compile(rb"\b(xpu|mps|hpu|npu|xla)\b|cuda(?!\.(manual_seed|is_available|device_count|seed|empty_cache))")


def on_cpu_alone(facts: Facts, loops: Loops, program: Program) -> Iterator[Argument]:
    """`cpu=True` where the program moves things, and only to the CPU."""
    if names_cpu_alone(facts, program):
        yield Argument(CPU, ON_CPU)


def names_cpu_alone(facts: Facts, program: Program) -> bool:
    """Whether a program moves things, and only to the CPU, as no caller of its functions can change."""
    units = units_of(facts, program)
    models = {origin for origin in program.model_origins if isinstance(origin, ast.Call)}
    classes = [cls for origin in models for cls in own_class(facts, origin)]
    modules = {unit.module for unit in units}.union(*({c.module, *facts.imported(c.module)} for c in classes))
    if any(_OTHERS.search(module.file.content) for module in modules):
        return False
    calls = [use.node for use in facts.calls if use.unit in units]
    if any(is_move(facts, call) and device_argument(facts, call) is None for call in calls):
        return False
    given = [device for call in calls for device in _given(facts, call)]
    return bool(given) and all(only_cpu(facts, device) and not _may_be_told(facts, device) for device in given)


def _given(facts: Facts, call: ast.Call) -> Iterator[ast.expr]:
    """The devices that a call puts something on, or makes it there; the CPU by its name is for what NumPy gets."""
    is_to = isinstance(call.func, ast.Attribute) and call.func.attr == "to" and not facts.targets(call)
    named = [keyword.value for keyword in call.keywords if keyword.arg == "device"]
    for each in [*(call.args[:1] if is_to else ()), *named]:
        if not is_cpu(facts, each) and (names_device(facts, facts.values(each)) or is_users(facts, each)):
            yield each


def _may_be_told(facts: Facts, node: ast.expr) -> bool:
    """Whether a device is a parameter of a function that a library calls, with what only a user knows."""
    unit = facts.unit(node)
    while isinstance(unit, Function) and isinstance(node, ast.Name):
        if node.id in unit.parameter_names:
            callers = facts.callers(unit)
            return not callers or any(call.handed is not None for call in callers)
        unit = unit.parent if unit.parent is not None else unit.module
    return False
