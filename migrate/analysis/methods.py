"""What a method gives, of objects whose class a library defines: one function a role."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from migrate.analysis import settings
from migrate.analysis.arguments import Arguments, folds, tensor, turns, unknown
from migrate.analysis.containers import of_container
from migrate.analysis.iteration import following, iterate, iterator
from migrate.analysis.known import tensors, training
from migrate.analysis.roles import NOTHING, ROWS, Role, Value, Values, computed
from migrate.analysis.state import ANY, ELEMENT, OVER, State

if TYPE_CHECKING:
    from collections.abc import Callable


def method(state: State, receiver: Value, name: str, arguments: Arguments) -> Values:
    """What a method of an object gives."""
    handler = _METHODS.get(receiver.role)
    if handler is not None:
        return handler(state, receiver, name, arguments)
    if name in ("parse_args", "parse_known_args", _INTO_SEVERAL):
        made = frozenset({Value(Role.HOLDER, arguments.node)})
        if name == "parse_args":
            return made
        key = ELEMENT if name == _INTO_SEVERAL else "0"  # the arguments, and what is left
        state.store(arguments.node.func, key, made)
        return frozenset({Value(Role.CONTAINER, arguments.node.func)})
    if receiver.role is Role.METHOD and receiver.receiver is not None and receiver.receiver.role in ROWS:
        return frozenset({Value(Role.STATISTIC, receiver.receiver.origin)})
    if name == "get" and arguments.node.args:  # of a part of settings
        if said := settings.said(receiver, settings.name_of(arguments.node.args[0])):
            return said | arguments.at(1, "default")
    return unknown(arguments.node, arguments)


#: Of transformers' HfArgumentParser: it gives a tuple of objects with the user's settings.
_INTO_SEVERAL = "parse_args_into_dataclasses"


#: The methods of a dictionary of layers that give them all.
_ALL_ITEMS = frozenset({"values", "items"})


def _of_model(state: State, model: Value, name: str, arguments: Arguments) -> Values:
    if name in training.FLUENT:
        return frozenset({model})
    if name in training.PARTS or (
        model.name == training.LAYERS_BY_NAME and name in _ALL_ITEMS
    ):  # layers, too, stand for what they hold: nobody asks for one alone
        return frozenset({Value(Role.PARAMETERS, model.origin)})
    if name == "state_dict":
        return frozenset({Value(Role.STATE, model.origin)})
    return computed(arguments.all(), Role.SAMPLES) or tensor(state, arguments)


def _of_rows(state: State, rows: Value, name: str, arguments: Arguments) -> Values:
    if rows.role is Role.BATCH and name in ("items", "values", "keys"):
        if name != "items":
            return frozenset({rows})
        state.store(arguments.node.func, "0", frozenset({Value(Role.TEXT, name=ANY)}))
        state.store(arguments.node.func, "1", frozenset({rows}))
        state.store(arguments.node, ELEMENT, frozenset({Value(Role.CONTAINER, arguments.node.func)}))
        # Also the batch itself: a comprehension over its items gives a batch again.
        return frozenset({Value(Role.ITERATOR, arguments.node), rows})
    if name in tensors.TO_HOST or turns(name, arguments.node, is_method=True):
        # Elsewhere, or the samples are no longer first.
        return frozenset({Value(Role.STATISTIC, rows.origin)})
    if name in tensors.MOVES or name in ("float", "long", "int", "double", "half", "contiguous", "pin_memory", "get"):
        return frozenset({rows})
    if folds(name, arguments.node, is_method=True):
        return frozenset({Value(Role.STATISTIC, rows.origin)})
    return frozenset({Value(Role.SAMPLES, rows.origin)})


def _of_statistic(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    return frozenset({value})


def _of_loader(state: State, loader: Value, name: str, arguments: Arguments) -> Values:
    if name == "__iter__":
        return iterator(state, arguments.node, iterate(state, frozenset({loader})), frozenset({loader}))
    return NOTHING


def _of_iterator(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    if name in ("next", "__next__"):
        return following(state, value)
    return frozenset({value}) if name == "__iter__" else NOTHING


def _of_optimizer(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    if name == "add_param_group" and value.origin is not None:
        state.store(value.origin, OVER, arguments.at(0, "param_group"))
    return frozenset({Value(Role.STATE, value.origin)}) if name == "state_dict" else NOTHING


def _of_tensor(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    """Compared with what came from a loader, `predicted.eq(labels)`, it is computed from that."""
    compared = arguments.all() if value.role is Role.TENSOR and name in tensors.COMPARISONS else NOTHING
    return computed(compared, Role.STATISTIC) or frozenset({value})


def _of_device(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    return NOTHING


def _of_holder(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    """Configurations are often dictionaries, too; what one has, its clone has."""
    if name == "clone":
        return frozenset({value})
    return of_container(state, value, name, arguments) if name in _OF_MAPPINGS else unknown(arguments.node, arguments)


_OF_MAPPINGS = frozenset("get update setdefault values items copy".split())


def _of_text(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    """Of `"optim.{}".format(name)` what stands around the holes is known, as of an f-string."""
    is_known = name == "format" and _HOLE.search(value.name) and "{{" not in value.name
    return frozenset({Value(Role.TEXT, name=_HOLE.sub(ANY, value.name) if is_known else ANY)})


_HOLE = re.compile(r"\{[^{}]*\}")


def _of_accelerator(state: State, value: Value, name: str, arguments: Arguments) -> Values:
    """What an accelerator gives back is what it was given: one object, or all of them in order."""
    if name not in ("prepare", "gather", "gather_for_metrics", "unwrap_model", "reduce"):
        return NOTHING
    if len(arguments.positional) == 1:
        return arguments.positional[0]
    for position, values in enumerate(arguments.positional):
        state.store(arguments.node, str(position), values)
    return frozenset({Value(Role.CONTAINER, arguments.node)})


_METHODS: dict[Role, Callable[[State, Value, str, Arguments], Values]] = {
    Role.MODEL: _of_model,
    Role.CRITERION: _of_tensor,
    Role.BATCH: _of_rows,
    Role.SAMPLES: _of_rows,
    Role.STATISTIC: _of_statistic,
    Role.LOADER: _of_loader,
    Role.ITERATOR: _of_iterator,
    Role.OPTIMIZER: _of_optimizer,
    Role.SCHEDULER: _of_optimizer,
    Role.ACCELERATOR: _of_accelerator,
    Role.TENSOR: _of_tensor,
    Role.PARAMETERS: _of_tensor,
    Role.DEVICE: _of_device,
    Role.CONTAINER: of_container,
    Role.TEXT: _of_text,
    Role.HOLDER: _of_holder,
}
