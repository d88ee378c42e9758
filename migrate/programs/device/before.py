"""Devices that tensors are put on before there is an accelerator, which makes one GPU that of the process.

    class Runner:
        def __init__(self):
            self.device = torch.device("cuda")
            self.betas = torch.linspace(0, 1, 10).to(self.device)    # the first GPU, in every process

        def train(self):                                             # makes the accelerator

Each process has its own GPU only from there on.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.units import Class, Function
from migrate.programs.chance.draws import Draws
from migrate.programs.reach.callees import reached
from migrate.programs.reach.outsiders import units_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.prepare.placement import Placement
    from migrate.programs.program import Program


@dataclass(frozen=True, slots=True)
class Before:
    """What runs before there is an accelerator."""

    units: frozenset[Unit]
    devices: frozenset[ast.AST]  # where those were made that something else than a trained model is put on
    names: frozenset[str]  # what texts are called that name such a device: "self.device"


def before(facts: Facts, program: Program, placement: Placement) -> Before:
    """The functions that run too early, and the devices that they use."""
    calls = list(Draws(facts, program).calls_before(placement.accelerator))
    entered = [target for call in calls for target in (*facts.targets(call), *_made(facts, call))]
    units = reached(facts, [*entered, *_own_constructor(program.start)])
    units -= {program.start, *units_from(facts, *([program.start] if program.start is not None else []))}
    calls += [node for unit in units for node in facts.own(unit) if isinstance(node, ast.Call)]
    used = {
        device
        for call in calls
        if not origins(facts.values(call), Role.MODEL) & program.model_origins
        for device in put_on(call)
        if facts.is_device(facts.values(device))
    }
    made = {value.origin for device in used for value in facts.values(device) if value.origin is not None}
    texts = {ast.unparse(device) for device in used if Role.TEXT in roles(facts.values(device))}
    return Before(frozenset(units), frozenset(made), frozenset(texts))


def put_on(call: ast.Call) -> Iterator[ast.expr]:
    """`x.to(device)`, `torch.ones(3, device=device)`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "to":
        yield from call.args[:1]
    yield from (keyword.value for keyword in call.keywords if keyword.arg == "device")


def _made(facts: Facts, call: ast.Call) -> Iterator[Function]:
    """The constructor that a call of a class enters."""
    for value in facts.values(call.func):
        if isinstance(value.unit, Class):
            yield from _constructors(value.unit)


def _own_constructor(start: Unit | None) -> Iterator[Function]:
    """The constructor of the object whose method makes the accelerator, in whatever line that is made."""
    if isinstance(start, Function) and start.owner is not None and not start.sets_up:
        yield from _constructors(start.owner)


def _constructors(cls: Class) -> Iterator[Function]:
    return iter(cls.constructors())
