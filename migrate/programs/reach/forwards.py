"""The forwards of the project that the call of a model runs: of the model, and of the layers that it makes or is given.

And the methods of its own object that a method enters.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import arguments
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value


def entered_with_forward(facts: Facts, call: ast.Call) -> tuple[Function, ...]:
    """The functions of the project that a call enters, and the `forward` of a model or a loss that it calls."""
    called = (value.unit for value in facts.values(call.func) if value.role in (Role.MODEL, Role.CRITERION))
    found = (unit for cls in called if isinstance(cls, Class) for unit in _methods(cls, "forward"))
    return tuple(dict.fromkeys([*facts.targets(call), *found]))


def forwards_inside(facts: Facts, call: ast.Call) -> set[Function]:
    """The `forward`s that a call may come to: each class's own, and those of the objects that its `__init__` has.

    Some of these it makes, others it is given (`self.codebook = codebook`).
    """
    waiting = [value.unit for value in facts.values(call.func)]
    waiting += [value.unit for value in _strung(facts, call)]
    classes: set[Class] = set()
    while waiting:
        cls = waiting.pop()
        if isinstance(cls, Class) and cls not in classes:
            classes.add(cls)
            made = [node for unit in _methods(cls, "__init__") for node in facts.own(unit)]
            calls = (node for node in made if isinstance(node, ast.Call))
            waiting += [value.unit for node in calls for value in facts.values(node) if value.origin is node]
            given = (node for node in made if isinstance(node, ast.Name))
            waiting += [value.unit for node in given for value in facts.values(node) if value.role is Role.MODEL]
    return {unit for cls in classes for unit in _methods(cls, "forward")}


def _strung(facts: Facts, call: ast.Call) -> Iterator[Value]:
    """The layers of a container of PyTorch that is called: `nn.Sequential(nn.Linear(2, 8), Scale(8))`."""
    made = origins(facts.values(call.func), Role.MODEL)
    given = (each for origin in made if isinstance(origin, ast.Call) for each in arguments(origin))
    yield from (value for each in given for value in facts.values(each) if value.role is Role.MODEL)


def with_own_methods(facts: Facts, unit: Function) -> list[Function]:
    """A method, and those of its object that it calls by name."""
    return list(dict.fromkeys([unit, *(method for _, method in own_calls(facts, unit))]))


def own_calls(facts: Facts, unit: Function) -> Iterator[tuple[ast.Call, Function]]:
    """The calls by which a method enters others of its object, each with one of these."""
    for call in facts.own(unit).of(ast.Call):
        if (
            isinstance(call.func, ast.Attribute)
            and is_own_object(unit, call.func.value)
            and isinstance(unit.owner, Class)
        ):
            yield from ((call, method) for method in _methods(unit.owner, call.func.attr))


def is_own_object(unit: Function, node: ast.expr) -> bool:
    """Whether an expression is the object that a method is run on."""
    return unit.itself is not None and isinstance(node, ast.Name) and node.id == unit.itself.arg


def _methods(cls: Class, name: str) -> list[Function]:
    return [member.unit for member in cls.lookup(name) if isinstance(member.unit, Function)]
