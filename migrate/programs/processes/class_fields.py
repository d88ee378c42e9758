"""Attributes that objects have of their class alone, or are made with: `seed: int = 17` in the body of a data class."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import arguments, targets_of, walk
from migrate.analysis.units import Class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from migrate.analysis.facts import Facts


def is_same_field(facts: Facts, node: ast.Attribute, same: Callable[[ast.expr], bool]) -> bool:
    """Whether an attribute that no statement sets of an object is the same on all processes, as its class says."""
    made = [value for value in facts.values(node.value) if value.role is Role.INSTANCE]
    if any(_is_set_of_class(facts, node.attr)):
        return False
    for value in made:
        fields = list(_fields(value.unit, node.attr)) if isinstance(value.unit, Class) else []
        if not fields or not isinstance(value.origin, ast.Call):
            return False
        default = fields[0].value  # that of the class itself, or of the nearest base
        if not all(map(same, arguments(value.origin))) or not (default is None or same(default)):
            return False
    return bool(made)


def _fields(cls: Class, name: str) -> Iterator[ast.Assign | ast.AnnAssign]:
    for each in cls.mro():
        for statement in each.node.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                if any(isinstance(target, ast.Name) and target.id == name for target in targets_of(statement)):
                    yield statement


def _is_set_of_class(facts: Facts, name: str) -> Iterator[bool]:
    """`Config.seed = int(os.environ["SLURM_PROCID"])`."""
    for binding in facts.bindings:
        if binding.target.endswith(f".{name}"):
            stored = (inner for inner in walk(binding.statement) if isinstance(inner, ast.Attribute))
            of_name = (each for each in stored if each.attr == name and isinstance(each.ctx, ast.Store))
            yield any(Role.CLASS in roles(facts.values(each.value)) for each in of_name)
