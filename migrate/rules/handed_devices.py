"""Devices that functions are handed: `def train(net, device="cuda:0")`, where the accelerator has its own.

A parameter that gives way to the accelerator is gone. The function that makes the accelerator keeps its parameter,
which its callers fill; what reads it below is on the accelerator's device, where the model and the batches are.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import defaults_of, is_docstring, own_nodes, walk
from migrate.analysis.units import Function, Module
from migrate.programs.amp.precision import Becomes
from migrate.programs.device.choices import choices
from migrate.programs.device.devices import is_move
from migrate.programs.device.the_cpu import only_cpu
from migrate.programs.values.users import from_user, names_device
from migrate.rules.placing import dropped_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Call, Unit
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

#: A variable that is read only so often is not worth keeping.
INLINED = 2


@dataclass(frozen=True, slots=True)
class _Handed:
    """A device parameter of the function that makes the accelerator, and what reads it below."""

    parameter: ast.arg
    reads: tuple[ast.Name, ...]
    device: str  # what they read instead

    @property
    def stays_variable(self) -> bool:
        """Whether it is read so often that the function keeps its name."""
        return len(self.reads) > INLINED


def handed_lines(conversion: Conversion) -> list[str]:
    """The statements below the accelerator that give the device parameters of its function the accelerator's."""
    return [f"{each.parameter.arg} = {each.device}" for each in _handed(conversion) if each.stays_variable]


def redirect_handed(conversion: Conversion, draft: Draft) -> None:
    """What reads the device that the function of the accelerator was handed, where that is not often."""
    for each in _handed(conversion):
        for node in each.reads if not each.stays_variable else ():
            draft.rewrite(node, each.device)


def overruled(conversion: Conversion) -> set[int]:
    """The arguments (by `id`) that fill parameters which nothing reads any more."""
    start = conversion.program.start
    if not isinstance(start, Function):
        return set()
    given = (
        argument_for(call, start, each.parameter)
        for each in _handed(conversion)
        if each.parameter in start.positional
        for call in conversion.facts.callers(start)
    )
    return {id(each.value if isinstance(each, ast.keyword) else each) for each in given if each is not None}


def _handed(conversion: Conversion) -> Iterator[_Handed]:
    facts, start = conversion.facts, conversion.program.start
    if not isinstance(start, Function):
        return
    chosen = choices(facts, start)
    inside = {id(node) for choice in chosen for node in choice.nodes()}
    for parameter in (*start.positional, *start.node.args.kwonlyargs):
        name, values = parameter.arg, start.parameters.get(parameter.arg, frozenset())
        is_rebound = any(isinstance(n, ast.Name) and n.id == name and _is_store(n) for n in own_nodes(start.node))
        if not names_device(facts, values) or is_rebound or any(choice.target == name for choice in chosen):
            continue
        reads = [node for node in reads_of(conversion, start, name) if id(node) not in inside]
        reads = [node for node in reads if _has_accelerator(conversion, node) and not only_cpu(facts, node)]
        if reads:
            device = f"{conversion.access.of(start)}.device"
            as_text = is_text(facts, reads) and not all(_moves_by(facts, node) for node in reads)
            yield _Handed(parameter, tuple(reads), f"{device}.type" if as_text else device)


def _is_store(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _moves_by(facts: Facts, node: ast.expr) -> bool:
    """`x.to(device)`, which takes a device as well as its name."""
    return is_move(facts, facts.tree(node).parents[node])


def _has_accelerator(conversion: Conversion, node: ast.expr) -> bool:
    statement = conversion.facts.tree(node).statement(node)
    return conversion.has_accelerator_at(statement) and conversion.access.can_reach(node)


def is_text(facts: Facts, reads: Sequence[ast.expr]) -> bool:
    """Whether a variable holds a text, "cuda", which the program may compare or print as such, by what reads it."""
    values = frozenset().union(*map(facts.values, reads))
    if from_user(values):  # a text, or what the user's settings made of it
        return any(isinstance(facts.tree(node).parents[node], ast.Compare) for node in reads)
    return bool(values) and roles(values) == {Role.TEXT}


# --- parameters that give way ---------------------------------------------------------------------------------------


def redirect_parameters(conversion: Conversion, draft: Draft) -> None:
    """In a function whose device parameter gives way: what still reads it reads the accelerator's device.

    Where that is often, the function keeps its `device` as a variable.
    """
    for parameter in conversion.access.parameters.values():
        if parameter.replaces is None:
            continue
        name = parameter.replaces.arg
        reads = list(reads_of(conversion, parameter.unit, name))
        if len(reads) > INLINED:
            first = _first_statement(parameter.unit)
            draft.before(first, f"{name} = {conversion.access.of(parameter.unit)}.device")
            continue
        for node in reads:
            draft.rewrite(node, f"{conversion.access.name(node)}.device")


def _first_statement(unit: Function) -> ast.stmt:
    """The first statement after the docstring."""
    body = unit.body
    return body[1] if is_docstring(body[0]) and len(body) > 1 else body[0]


def reads_of(conversion: Conversion, unit: Function, name: str) -> Iterator[ast.Name]:
    """What is left that reads a parameter of a function, in what sees its names, too."""
    facts, left_out = conversion.facts, gone(conversion)
    for node in walk(unit.node):
        if not isinstance(node, ast.Name) or node.id != name or _is_store(node) or id(node) in left_out:
            continue
        if (within := scope(facts, node)) is unit or sees(within, unit, name):
            yield node


def scope(facts: Facts, node: ast.expr) -> Unit:
    """The unit whose variables an expression reads: a default, `device=device`, has those around its function."""
    unit = facts.unit(node)
    while isinstance(unit, Function) and any(node is inner for each in defaults_of(unit.node) for inner in walk(each)):
        unit = unit.parent or unit.module
    return unit


def sees(unit: Unit, owner: Unit, name: str) -> bool:
    """Whether a name read in a unit is the variable of the owner, not one of its own."""
    while unit is not owner:
        if isinstance(unit, Module):
            return isinstance(owner, Module)  # imported by name
        if name in unit.parameters or any(p.arg == name for p in (*unit.positional, *unit.node.args.kwonlyargs)):
            return False
        if any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in own_nodes(unit.node)):
            return False
        unit = unit.parent if unit.parent is not None else unit.module
    return True


# --- what goes away -------------------------------------------------------------------------------------------------


def gone(conversion: Conversion) -> set[int]:
    """The expressions (by `id`) that go with the moves, the mixed precision, and the arguments that give way."""
    mixed = conversion.by_hand.mixed
    left_out = (*_replaced_arguments(conversion), *mixed.of(Becomes.GONE), *mixed.contexts)
    return dropped_arguments(conversion) | {id(inner) for each in left_out for inner in ast.walk(each)}


def _replaced_arguments(conversion: Conversion) -> Iterator[ast.expr]:
    """The `device` arguments that give way to the accelerator."""
    for parameter in conversion.access.parameters.values():
        if parameter.replaces is None:
            continue
        for call in conversion.facts.callers(parameter.unit):
            given = argument_for(call, parameter.unit, parameter.replaces)
            if given is not None:
                yield given.value if isinstance(given, ast.keyword) else given


def argument_for(call: Call, unit: Function, parameter: ast.arg) -> ast.expr | ast.keyword | None:
    """The argument of a call that fills a parameter, as it can be edited."""
    position = unit.positional.index(parameter) - int(call.bound)
    if position < len(call.node.args):
        return call.node.args[position]
    return next((keyword for keyword in call.node.keywords if keyword.arg == parameter.arg), None)
