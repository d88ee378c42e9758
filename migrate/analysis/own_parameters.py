"""Single parameters of models that a list or a group names: `[net.weight, head.scale]`, `{"params": head.scale}`.

A tensor says nothing of where it belongs. What a model was given as `self.scale = nn.Parameter(...)` belongs to the
objects of that class; among the elements of a list it stands for the parameters of the one that it is asked of.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import NOTHING, NUMBER, Role, Value, Values

if TYPE_CHECKING:
    from migrate.analysis.state import State

#: What makes a tensor that a model counts among its parameters.
MADE_BY = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
#: Parameters that layers of libraries have under these names.
_OF_LAYERS = frozenset({"weight", "bias"})


def registered(state: State, owner: Value, name: str, values: Values) -> None:
    """`self.scale = nn.Parameter(...)`: the model has a parameter of that name from now on."""
    tensors = [value for value in values if value.role is Role.TENSOR]
    if owner.role is Role.MODEL and tensors and all(value.name in MADE_BY for value in tensors):
        state.store(owner.origin, _mark(name), NUMBER)


def listed(state: State, node: ast.expr, values: Values) -> Values:
    """The values of an expression as an element: where it names a parameter of a model, parameters of that model."""
    if not isinstance(node, ast.Attribute):
        return values
    each = [_of(state, owner, node.attr) for owner in state.values.get(node.value, NOTHING)]
    if not each or not all(each):  # one of the objects may have another tensor under that name
        return values
    found = state.record(node, NOTHING.union(*each))
    return found | frozenset(value for value in values if value.role not in (Role.TENSOR, Role.METHOD))


def _of(state: State, owner: Value, name: str) -> Values:
    is_layer = owner.role is Role.METHOD and owner.unit is None  # `net.fc` of a library's model
    model = _innermost(owner) if is_layer else owner
    if model.role is not Role.MODEL or model.origin is None:
        return NOTHING
    is_own = not is_layer and bool(state.load(model.origin, _mark(name)))
    is_of_library = name in _OF_LAYERS and (is_layer or model.unit is None)
    return frozenset({Value(Role.PARAMETERS, model.origin)}) if is_own or is_of_library else NOTHING


def _innermost(value: Value) -> Value:
    while value.receiver is not None:
        value = value.receiver
    return value


def _mark(name: str) -> str:
    return f"<parameter {name}>"
