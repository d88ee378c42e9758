"""Models that train themselves: classes whose methods call backward, `model.fit(loader)`, `trainer.gen_update(a, b)`.

Their methods are code of the program, which has the accelerator; what their forward calls runs inside the model, as it
does in any other.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.units import Function
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_MODELS = frozenset({Role.MODEL, Role.CRITERION})


def steps(facts: Facts) -> frozenset[Function]:
    """The methods of models that are code of the program, not of the model."""
    return facts.once(_found)


def _found(facts: Facts) -> frozenset[Function]:
    training = _leading(facts, {use.unit for use in facts.method_calls("backward") if _is_method(facts, use.unit)})
    owners = {unit.owner for unit in training}
    methods = {
        unit for unit in facts.functions if unit.owner in owners and not (unit.name[:2] == unit.name[-2:] == "__")
    }
    forward = {unit for unit in methods if unit.name == "forward"} - training
    return frozenset(training | (methods - reached(facts, forward)))


def _is_method(facts: Facts, unit: object) -> bool:
    """Whether a function is a method of a model, or of a class that only models inherit from."""
    if not isinstance(unit, Function) or unit.owner is None:
        return False
    if facts.roles_of_bases(unit.owner) & _MODELS:
        return True
    objects = roles(unit.parameters.get(unit.itself.arg, frozenset())) if unit.itself is not None else set()
    return bool(objects) and objects <= _MODELS


def _leading(facts: Facts, waiting: set[object]) -> set[Function]:
    """Methods of models, with those that call them."""
    found: set[Function] = set()
    while waiting:
        unit = waiting.pop()
        if isinstance(unit, Function) and unit not in found:
            found.add(unit)
            waiting |= {call.caller for call in facts.callers(unit) if _is_method(facts, call.caller)}
    return found


def is_itself(facts: Facts, node: ast.expr) -> bool:
    """Whether a model is meant by `self`, in one of its own methods: it knows itself without a wrapper."""
    unit: Unit | None = facts.unit(node)
    if not isinstance(node, ast.Name):
        return False
    while isinstance(unit, Function) and node.id not in unit.parameter_names:
        unit = unit.parent  # a function inside of a method has its `self`, a class inside of a function one of its own
    if not isinstance(unit, Function) or (itself := unit.itself) is None:
        return False
    return node.id == itself.arg and _is_method(facts, unit)


def wholes(facts: Facts, models: set[ast.AST]) -> set[ast.AST]:
    """Where the models were made that train themselves and hold these; without one, a model stands for itself."""
    training: set[ast.AST] = set()
    unreached: set[ast.AST] = set()  # by an accelerator of their callers: torch calls `forward` with what it was given
    for step in steps(facts):
        if (itself := step.itself) is not None:
            mine = origins(step.parameters.get(itself.arg, frozenset()), Role.MODEL)
            training |= mine
            unreached |= mine if step.name == "forward" else set()
    training -= unreached
    found: set[ast.AST] = set()
    parts = {whole: facts.parts([whole]) for whole in training} if models else {}
    for model in models:
        holding = {whole for whole in training if model in parts[whole]}
        found |= holding if len(holding) == 1 else {model}
    return found
