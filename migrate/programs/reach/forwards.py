"""The forwards of the project that the call of a model runs: of the model, and of the layers that it makes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def forwards_inside(facts: Facts, call: ast.Call) -> set[Function]:
    """The `forward`s that a call may come to: each class's own, and those of the objects that its `__init__` makes."""
    waiting = [value.unit for value in facts.values(call.func)]
    classes: set[Class] = set()
    while waiting:
        cls = waiting.pop()
        if isinstance(cls, Class) and cls not in classes:
            classes.add(cls)
            made = [node for unit in _methods(cls, "__init__") for node in facts.own(unit)]
            calls = (node for node in made if isinstance(node, ast.Call))
            waiting += [value.unit for node in calls for value in facts.values(node) if value.origin is node]
    return {unit for cls in classes for unit in _methods(cls, "forward")}


def _methods(cls: Class, name: str) -> list[Function]:
    return [member.unit for member in cls.lookup(name) if isinstance(member.unit, Function)]
