"""Programs that spread over several devices by themselves: parts of a model here and there, by number or by name."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.units import Class
from migrate.programs.device.devices import is_move
from migrate.programs.device.tensor_types import casts_to_gpu
from migrate.programs.device.the_cpu import only_cpu
from migrate.programs.program import Refusal
from migrate.programs.values.fetches import own_class

if TYPE_CHECKING:
    from collections.abc import Iterator
    from collections.abc import Set as AbstractSet

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

_NUMBERED = re.compile(r"(?:cuda|xpu):(\d+)")


def several_devices(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Tensors that are put on one GPU here and on another there; one that is chosen among several is one."""
    modules = {loop.unit.module for loop in program.training}
    models = _models(facts, modules)
    first: frozenset[int] = frozenset()
    halves: dict[Class, set[str]] = {}  # of a model: the names of the devices that its parts go to
    for use in sorted(facts.calls, key=lambda use: use.unit.module not in modules):
        owner = getattr(use.unit, "owner", None)
        is_asked = use.unit.module in modules or any(owner.is_related(model) for model in models if owner is not None)
        for given in _devices(facts, program, use.node) if is_asked else ():
            found = _numbers(facts, given)
            first = first or found
            if not found and owner is not None and _is_named(facts, owner, given):
                halves.setdefault(owner, set()).add(ast.unparse(given).rpartition(".")[2])
            names = sorted(next((parts for parts in halves.values() if len(parts) > 1), ()))
            if (found and not found & first) or names:
                names = [f"cuda:{number}" for number in sorted(found | first)] or names
                yield Refusal(
                    use.node,
                    "MIG110",
                    f"the program spreads over several devices itself ({', '.join(names)})",
                    "keep the whole model on one device, or convert by hand",
                )
                return


def _models(facts: Facts, modules: AbstractSet[Module]) -> list[Class]:
    """The models of other files that some modules, or those that they import, make objects of."""
    reached, waiting = set(modules), [*modules]
    while waiting:
        new = waiting.pop().imports - reached
        reached |= new
        waiting += new
    uses = [use for use in facts.calls if use.unit.module in reached] if reached > modules else []
    made = dict.fromkeys(model for use in uses for model in own_class(facts, use.node))
    return [model for model in made if model.module not in modules and Role.MODEL in facts.roles_of_bases(model)]


#: What PyTorch itself calls a device; others come with a library that gives its backend a name.
_TYPES = frozenset("cpu cuda mps xpu gpu meta xla hpu npu mlu mtia hip ipu privateuseone".split())


def foreign_devices(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """`torch.device("tiny")`: a backend that no accelerator chooses."""
    modules = {loop.unit.module for loop in program.training}
    for use in facts.calls_to(("torch.device",)):
        given = use.node.args[0] if use.node.args and use.unit.module in modules else None
        kind = given.value.partition(":")[0] if isinstance(given, ast.Constant) and isinstance(given.value, str) else ""
        if kind and kind not in _TYPES:
            why = f"the device {kind} is of a library of its own: the accelerator does not choose among these"
            yield Refusal(use.node, "MIG101", why, "train on the CPU or a GPU, or convert by hand")


def devices_in_turn(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """`for device in ["cpu", "cuda"]:` around a training: each device is meant, and the accelerator has one."""
    modules = {loop.unit.module for loop in program.training}
    for binding in facts.bindings:
        loop = binding.statement
        if not isinstance(loop, (ast.For, ast.AsyncFor)) or binding.unit.module not in modules:
            continue
        named = {value.name for value in binding.values if value.role is Role.TEXT}
        kinds = {name.partition(":")[0] for name in named}
        if len(kinds) > 1 and kinds <= _TYPES and loops.trains(loop):
            why = f"the program trains on {' and on '.join(sorted(kinds))} by turns, and an accelerator has one device"
            yield Refusal(loop, "MIG101", why, "take this loop out: `runtime launch --cpu` trains on the CPU")
            return


def _devices(facts: Facts, program: Program, call: ast.Call) -> Iterator[ast.expr]:
    """What a call names as the device of a tensor or a part of a model; a whole model may go from one to another."""
    whole = origins(facts.receiver(call), Role.MODEL)
    if (is_move(facts, call) and not (whole and whole <= program.model_origins)) or _is_kept_on_cpu(facts, call):
        yield from call.args[:1] if not casts_to_gpu(facts, call) else ()
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "device")


def _is_kept_on_cpu(facts: Facts, call: ast.Call) -> bool:
    """`self.scale = nn.Parameter(...).to(loss_device)`, which is the CPU: that stays there when the rest is moved."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "to" or not call.args:
        return False
    made, unit = call.func.value, facts.unit(call)
    is_part = isinstance(made, ast.Call) and any(name.startswith("torch.nn.") for name in facts.called(made))
    return is_part and getattr(unit, "name", "") == "__init__" and only_cpu(facts, call.args[0])


def _is_named(facts: Facts, owner: Class, given: ast.expr) -> bool:
    """Whether an expression in a model names a device, as against asking a tensor for the one that it lies on."""
    if Role.MODEL not in facts.roles_of_bases(owner):
        return False
    if isinstance(given, ast.Attribute) and given.attr == "device":
        holders = facts.values(given.value)
        is_own = any(isinstance(value.unit, Class) and value.unit.is_related(owner) for value in holders)
        return is_own or Role.HOLDER in roles(holders)
    found = facts.values(given)
    is_asked = bool(found) and all(value.role is Role.METHOD and value.name == "device" for value in found)
    return not is_asked and not isinstance(given, ast.Constant)  # `self._device()`, `device = x.device`


def _numbers(facts: Facts, node: ast.expr, depth: int = 3) -> frozenset[int]:
    """The numbers of the GPUs that an expression may name."""
    if isinstance(node, ast.Constant):
        return _named(node.value)
    if isinstance(node, ast.IfExp):
        return _numbers(facts, node.body, depth) | _numbers(facts, node.orelse, depth)
    found: frozenset[int] = frozenset()
    if depth < 0:  # `self.device = torch.device(self.device)` may be made of itself
        return found
    for value in facts.values(node) if depth else ():
        if value.role is Role.TEXT:
            found |= _named(value.name)
        elif value.role is Role.DEVICE and isinstance(value.origin, ast.Call) and value.origin is not node:
            found |= _numbers(facts, value.origin, depth - 1)
    if isinstance(node, ast.Call) and "torch.device" in facts.called(node) and node.args:
        found |= _numbers(facts, node.args[-1], depth - 1)
    return found


def _named(value: object) -> frozenset[int]:
    if isinstance(value, int) and not isinstance(value, bool):
        return frozenset({value})
    match = _NUMBERED.fullmatch(value) if isinstance(value, str) else None
    return frozenset({int(match[1])}) if match else frozenset()
