"""What an object has when its constructor ends, or begins: attributes that other methods do not give it anew later."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.construction import is_constructor
from migrate.analysis.known.training import GIVES_ITSELF
from migrate.programs.home.entry import set_below
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Mapping

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function, Unit


def made_with(facts: Facts, unit: Unit, key: str) -> tuple[ast.stmt, ...] | None:
    """The statements of a constructor by which its object is given an attribute; none for a field: that is there."""
    assert is_constructor(unit)
    is_there = key in _fields(unit) and f"self.{key}" not in _set_later(facts, unit)
    return facts.once(_Below)[unit].get(key, () if is_there else None)


def _fields(init: Function) -> set[str]:
    """The fields that an object has when its `__post_init__` begins."""
    classes = init.owner.mro() if init.is_after_fields and init.owner is not None else []
    declared = (node.target for cls in classes for node in cls.node.body if isinstance(node, ast.AnnAssign))
    return {target.id for target in declared if isinstance(target, ast.Name)}


class _Below(dict["Unit", "Mapping[str, tuple[ast.stmt, ...]]"]):
    """What each `__init__` has its object given by what it calls, and what no method gives it anew later."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, init: Unit) -> Mapping[str, tuple[ast.stmt, ...]]:
        assert is_constructor(init)
        later = _set_later(self._facts, init)
        self[init] = {key: made for key, made in set_below(self._facts, init).items() if f"self.{key}" not in later}
        return self[init]


def _set_later(facts: Facts, init: Function) -> set[str]:
    """The attributes that an object's methods give other objects once its `__init__` is over."""
    assert init.owner is not None
    inside = reached(facts, [init])
    return {
        binding.target
        for unit in facts.functions
        if unit.owner is not None and unit.owner.is_related(init.owner) and unit not in inside
        for binding in facts.bindings_in(unit)
        if not stays_itself(binding.statement, binding.target)
    }


def stays_itself(statement: ast.AST, target: str) -> bool:
    """`model = model.eval()`, `model = model.apply(f)`: the object stays what it was."""
    made = getattr(statement, "value", None)
    return (
        isinstance(made, ast.Call)
        and isinstance(made.func, ast.Attribute)
        and made.func.attr in GIVES_ITSELF
        and ast.unparse(made.func.value) == target
    )
