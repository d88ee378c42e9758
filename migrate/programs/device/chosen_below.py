"""A device that the training function or an object chooses, for an accelerator that is made above it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Function
from migrate.programs.device.choices import Choice, choices
from migrate.programs.device.devices import by_text, device_argument, is_move
from migrate.programs.device.handed_down import handed_device
from migrate.programs.device.told_above import told_above
from migrate.programs.values.conditions import needs

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.analysis.units import Unit
    from migrate.programs.program import Program


def cpu_below(facts: Facts, program: Program, units: Container[Unit]) -> tuple[str, frozenset[str]] | None:
    """The condition for the CPU by a device that is chosen below the accelerator's function, or handed to that."""
    assert program.start is not None
    if (below := choice_below(facts, program)) is not None and (above := told_above(facts, program.start, below)):
        return above
    inside = {told_above(facts, program.start, choice) for choice in _of_objects(facts, program, units)}
    if len(inside) == 1 and (above := inside.pop()) is not None:
        return above
    handed = handed_device(facts, program.start) or _returned(facts, program.start)
    if handed is not None:
        return ast.unparse(by_text(handed)), frozenset(needs(handed))
    return _among_settings(facts, program.start)


def _among_settings(facts: Facts, start: Unit | None) -> tuple[str, frozenset[str]] | None:
    """The condition by a device among the keywords that an object keeps whole: `self.__dict__.update(settings)`."""
    if not isinstance(start, Function) or start.owner is None or start.itself is None:
        return None
    settings, itself, cls = start.node.args.kwarg, start.itself.arg, start.owner
    calls = {ast.unparse(node) for node in facts.own(start) if isinstance(node, ast.Call)}
    if (
        "torch" not in start.module.names
        or settings is None
        or f"{itself}.__dict__.update({settings.arg})" not in calls
    ):
        return None
    asked = (n for n in facts.own(start) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == itself)
    kept = {n.attr for n in asked if not cls.sets(n.attr) and _is_users_choice(facts, facts.values(n))}
    if len(kept) != 1:
        return None
    device = ast.Subscript(ast.Name(settings.arg), ast.Constant(kept.pop()))
    return ast.unparse(by_text(device)), frozenset({settings.arg})


def _is_users_choice(facts: Facts, values: Values) -> bool:
    """Whether values are a device that one of the program's units chooses by what a user says."""
    made = {facts.unit(value.origin) for value in values if isinstance(value.origin, ast.expr)}
    return any(_gives_chosen(facts, unit, values) for unit in made)


def _returned(facts: Facts, start: Unit | None) -> ast.expr | None:
    """What the function above calls the device that another function chooses by a flag, among other things:
    `args, device = get_parameters()`.
    """
    for binding in facts.bindings_in(start) if start is not None else ():
        value = getattr(binding.statement, "value", None)
        if not isinstance(value, ast.Call) or not binding.target.isidentifier() or not facts.is_device(binding.values):
            continue
        if any(_gives_chosen(facts, target, binding.values) for target in facts.targets(value)):
            return ast.Name(binding.target)
    return None


def _gives_chosen(facts: Facts, unit: Unit, values: Values) -> bool:
    """Whether values are the device that a function chooses by what a user says."""
    chosen = (choice for choice in choices(facts, unit) if choice.asks_user)
    return any(is_of(facts, values, choice) for choice in chosen)


def is_of(facts: Facts, values: Values, choice: Choice) -> bool:
    """Whether values are the device of a choice."""
    made = {id(value.origin) for value in values}
    return facts.is_device(values) and any(is_one_of(facts, node, made) for node in choice.nodes())


def choice_below(facts: Facts, program: Program) -> Choice | None:
    """The device choice of the home that a user's flag decides, where the accelerator is made above."""
    if program.home is program.start or not isinstance(program.home, Function):
        return None
    return next((c for c in choices(facts, program.home) if c.cpu is not None and c.is_clear), None)


def _of_objects(facts: Facts, program: Program, units: Container[Unit]) -> Iterator[Choice]:
    """The choices of objects by which they move the trained models: `self.device = get_device(args.cpu)`."""
    made: set[int] = set()
    for use in facts.calls:
        if use.unit in units and is_move(facts, use.node):
            given = device_argument(facts, use.node)
            if given is not None and origins(facts.receiver(use.node), Role.MODEL) & program.model_origins:
                made |= {id(value.origin) for value in facts.values(given)}
    for unit in facts.functions:
        if unit in units and unit.owner is not None and unit is not program.start:
            for choice in choices(facts, unit):
                if choice.cpu is not None and any(is_one_of(facts, n, made) for n in ast.walk(choice.statement)):
                    yield choice


def is_one_of(facts: Facts, node: ast.AST, made: Container[int]) -> bool:
    """Whether a device is made here, or handed on from where it is made; `made` has the ids of these places."""
    return id(node) in made or any(id(value.origin) in made for value in facts.values(node))
