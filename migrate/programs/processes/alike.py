"""What all processes do in a step, or none of them: else each goes on with other weights, or waits for the others.

To change what is trained, by hand, too, to make another optimizer, to set a rate, to step a scheduler, to evaluate on
shared-out batches, to take such a batch, and to keep or save the weights.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.training import CLIPPING
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import argument_at, arguments, targets_of, walk
from migrate.programs.reach.outsiders import is_inside_model
from migrate.programs.training.gradients_off import without_gradients
from migrate.programs.values.kept import written

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value

_DEEPEST = 4  # calls inside calls
#: Methods by what they change on the process that calls them, or read of it for later.
_METHODS = {
    Role.MODEL: frozenset({"load_state_dict", "requires_grad_", "apply", "zero_grad", "state_dict"}),
    Role.OPTIMIZER: frozenset({"load_state_dict", "add_param_group", "zero_grad"}),
    Role.SCHEDULER: frozenset({"load_state_dict", "step"}),
}


class Alike:
    """Questions about what code does that all processes must do."""

    def __init__(self, facts: Facts, shared: Iterable[ast.AST], rates: Collection[str] = ()) -> None:
        self._facts = facts
        self._shared = frozenset(shared)  # evaluations, and what takes a batch that is shared out
        self._rates = frozenset(rates)  # the places that a learning rate goes by

    def is_done(self, statements: Iterable[ast.AST], depth: int = _DEEPEST) -> bool:
        """Whether code does such a thing, itself or in the functions that it calls."""
        return any(self._is_one(node, depth) for statement in statements for node in walk(statement))

    def runs(
        self, models: Collection[ast.AST], statements: Iterable[ast.AST], depth: int = _DEEPEST
    ) -> ast.Call | None:
        """Where code runs one of some models as it is trained, itself or in the functions that it calls."""
        for node in (node for statement in statements for node in walk(statement)):
            if not isinstance(node, ast.Call) or without_gradients(self._facts, node):
                continue
            if not origins(self._facts.values(node.func), Role.MODEL).isdisjoint(models):
                return node
            units = [unit for unit in self._facts.targets(node) if not is_inside_model(self._facts, unit)]
            if depth and any(self.runs(models, unit.body, depth - 1) is not None for unit in units):
                return node
        return None

    def _is_one(self, node: ast.AST, depth: int) -> bool:
        if node in self._shared:
            return True
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            return node.attr == "requires_grad" or self._is_of_parameter(node)
        if isinstance(node, (ast.Assign, ast.AugAssign)) and self._is_rate(node):
            return True
        if isinstance(node, ast.AugAssign):
            return self._is_of_parameter(node.target)
        if not isinstance(node, ast.Call):
            return False
        names = self._facts.called(node)
        if not names.isdisjoint(CLIPPING) or self._is_method(node) or self._is_in_place(node, names):
            return True
        if makes_optimizer(self._facts, node):
            return True
        saved = argument_at(node, 0, "obj") if "torch.save" in names else None
        if saved is not None and Role.MODEL in roles(self._facts.values(saved)):
            return True
        return depth > 0 and any(
            self.is_done(unit.body, depth - 1)
            for unit in self._facts.targets(node)
            if not is_inside_model(self._facts, unit)
        )

    def _is_rate(self, statement: ast.Assign | ast.AugAssign) -> bool:
        """Whether a statement sets a learning rate, or something that one goes by."""
        return sets_rate(statement) or any(not self._rates.isdisjoint(written(to)) for to in targets_of(statement))

    def _is_in_place(self, call: ast.Call, names: Collection[str]) -> bool:
        """`p.data.mul_(0.5)`, `nn.init.zeros_(model.weight)`."""
        if any(name.startswith("torch.nn.init.") for name in names):
            return any(map(self._is_of_parameter, call.args[:1]))
        is_changing = isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_")
        return is_changing and isinstance(call.func, ast.Attribute) and self._is_of_parameter(call.func.value)

    def _is_of_parameter(self, node: ast.expr) -> bool:
        """Whether something is a parameter of a model, its data or its gradient."""
        while isinstance(node, ast.Attribute) and node.attr in ("data", "grad"):
            node = node.value
        values = self._facts.values(node)
        return Role.PARAMETERS in roles(values) or any(map(_is_attribute_of_model, values))

    def _is_method(self, call: ast.Call) -> bool:
        if not isinstance(call.func, ast.Attribute):
            return False
        mine = roles(self._facts.receiver(call)) & _METHODS.keys()
        return any(call.func.attr in _METHODS[role] for role in mine)


def makes_optimizer(facts: Facts, call: ast.Call) -> bool:
    """Whether a call gives an optimizer, which begins with states and a rate of its own."""
    return Role.OPTIMIZER in roles(facts.values(call))


#: What must be made alike on all processes: steps of the same size, over shares of the same data.
_MADE_ALIKE = frozenset({Role.OPTIMIZER, Role.SCHEDULER, Role.LOADER})


def goes_by(facts: Facts, call: ast.Call) -> list[ast.expr]:
    """What all processes must give a call alike: what a scheduler is told, what a loader or an optimizer is made of."""
    given = arguments(call)
    if Role.SCHEDULER in roles(facts.receiver(call)):
        return given
    if facts.targets(call) or not any(v.role in _MADE_ALIKE and v.origin is call for v in facts.values(call)):
        return []
    return [each for each in given if Role.OPTIMIZER not in roles(facts.values(each))]


def sets_rate(statement: ast.Assign | ast.AugAssign) -> bool:
    """Whether a statement is `group["lr"] = ...`."""
    return any(
        isinstance(to, ast.Subscript) and isinstance(to.slice, ast.Constant) and to.slice.value == "lr"
        for to in targets_of(statement)
    )


def rate_places(facts: Facts, roots: Iterable[ast.AST]) -> frozenset[str]:
    """What learning rates go by that are set in some code, or in functions that it calls, as it is written there."""
    nodes = [node for root in roots for node in walk(root)]
    given = [node for node in nodes if isinstance(node, (ast.Assign, ast.AugAssign))]
    found = {place for node in given if sets_rate(node) for place in _read(node.value)}
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        inner = (node for unit in facts.targets(call) for node in facts.own(unit))
        if any(isinstance(node, (ast.Assign, ast.AugAssign)) and sets_rate(node) for node in inner):
            found |= {place for part in arguments(call) for place in _read(part)}
    for _ in range(_DEEPEST):
        found |= {
            place
            for node in given
            if any(not found.isdisjoint(written(to)) for to in targets_of(node))
            for place in _read(node.value)
        }
    return frozenset(found)


def _read(node: ast.expr) -> set[str]:
    return {ast.unparse(inner) for inner in walk(node) if isinstance(inner, (ast.Name, ast.Attribute))}


def _is_attribute_of_model(value: Value) -> bool:
    """`model.weight`, `model.fc.weight`."""
    above = value.receiver
    while above is not None and above.role is Role.METHOD:
        above = above.receiver
    return value.role is Role.METHOD and above is not None and above.role is Role.MODEL
