"""The code around an object whose `__init__` makes the accelerator: there it is an attribute of that object.

`agent = Agent(env)` in a script, and the loop over its episodes below: what is said there is said by
`agent.accelerator.print(...)`. Functions have it where the object is a name of their module, or a parameter.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import line_of
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.analysis.units import Call, Unit
    from migrate.programs.program import Program


#: Methods of modules that give the module itself back.
_GIVING_BACK = frozenset("to cuda cpu float double train eval requires_grad_".split())


@dataclass(frozen=True, slots=True)
class Holder:
    """The name of the object in a unit, and the statements below which it has it."""

    name: str
    block: list[ast.stmt]
    line: int

    def is_there(self, facts: Facts, node: ast.AST) -> bool:
        """Whether the object has been made when a node of the unit runs."""
        is_below = line_of(node) > self.line
        return is_below and facts.tree(node).in_block(node, self.block) is not None


def around(facts: Facts, program: Program, units: Container[Unit]) -> dict[Unit, Holder]:
    """The units around the object, outside of the program's own, by the name that it has in each."""
    start = program.start
    if not isinstance(start, Function) or start.owner is None or not start.sets_up:
        return {}
    found: dict[Unit, Holder] = {}
    several = {*program.others, *(call.caller for other in program.others for call in _callers(facts, other))}
    for call in making(facts, start):
        unit = call.caller
        if unit not in units and facts.is_editable(unit):
            several |= {unit} & found.keys()
            if (holder := _named(facts, call)) is not None:
                found[unit] = holder
    for unit in several & found.keys():
        del found[unit]
    while more := dict(_reached(facts, start.owner, units, found)):
        found |= more
    return found


def is_around(facts: Facts, start: Unit, unit: Unit) -> bool:
    """Whether a unit makes the one object of which `start` is the `__init__`, under a name."""
    if not isinstance(start, Function) or start.owner is None or not start.sets_up:
        return False
    calls = list(making(facts, start))
    return len(calls) == 1 and calls[0].caller is unit and _named(facts, calls[0]) is not None


def _callers(facts: Facts, unit: Unit) -> Iterator[Call]:
    if isinstance(unit, Function):
        yield from making(facts, unit) if unit.owner is not None else facts.callers(unit)


def making(facts: Facts, start: Function) -> Iterator[Call]:
    """The calls that make an object of the class, or of one derived from it."""
    for call in facts.callers(start):
        unit = call.caller
        if isinstance(unit, Function) and unit.sets_up and _is_derived(unit.owner, start.owner):
            yield from facts.callers(unit)
        else:
            yield call


def _is_derived(cls: object, owner: Class | None) -> bool:
    return isinstance(cls, Class) and owner is not None and owner in cls.mro()


def _named(facts: Facts, call: Call) -> Holder | None:
    """`agent = Agent(env)`, once, and not in a loop."""
    tree = facts.tree(call.node)
    statement = tree.statement(call.node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    if statement.value is not call.node and not _is_moved(facts, statement.value, call.node):
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or next(tree.loops(statement), None) is not None:
        return None
    if sum(binding.target == target.id for binding in facts.bindings_in(call.caller)) != 1:
        return None
    return Holder(target.id, tree.block(statement), statement.end_lineno or statement.lineno)


def _is_moved(facts: Facts, node: ast.expr, made: ast.Call) -> bool:
    """`Agent(env).to(device)`: a module gives itself back."""
    while isinstance(node, ast.Call) and node is not made and isinstance(node.func, ast.Attribute):
        if node.func.attr not in _GIVING_BACK or Role.MODEL not in roles(facts.receiver(node)):
            return False
        node = node.func.value
    return node is made


def _reached(
    facts: Facts, owner: Class, units: Container[Unit], found: dict[Unit, Holder]
) -> Iterator[tuple[Unit, Holder]]:
    """The functions that are only called where the object is, and see it."""
    for unit in facts.functions:
        if unit in units or unit in found or unit.owner is not None or unit.parent is not None:
            continue
        calls = facts.callers(unit) if facts.is_editable(unit) and facts.callers_known(unit) else []
        if not calls or not all(_is_called_later(facts, call, found) for call in calls):
            continue
        name = _parameter(unit, owner) or _global(facts, unit, found)
        if name is not None and not isinstance(unit.node, ast.Lambda):
            yield unit, Holder(name, unit.node.body, 0)


def _is_called_later(facts: Facts, call: Call, found: dict[Unit, Holder]) -> bool:
    return call.handed is None and call.caller in found and found[call.caller].is_there(facts, call.node)


def _parameter(unit: Function, owner: Class) -> str | None:
    """The parameter through which a function is handed the object."""
    for parameter in unit.positional:
        if _is_object(unit.parameters.get(parameter.arg, frozenset()), owner):
            return parameter.arg
    return None


def _is_object(values: Values, owner: Class) -> bool:
    return bool(values) and all(value.role is Role.INSTANCE and _is_derived(value.unit, owner) for value in values)


def _global(facts: Facts, unit: Function, found: dict[Unit, Holder]) -> str | None:
    """The name of the object in the module, where the function does not hide it."""
    holder = found.get(unit.module)
    if holder is None or holder.name in unit.parameter_names:
        return None
    return None if any(b.target == holder.name for b in facts.bindings_in(unit)) else holder.name
