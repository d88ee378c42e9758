"""Nested containers: lists, tuples, named tuples, mappings and dataclasses, with values at their leaves.

A container comes back as its own type, also `defaultdict`, frozen dataclasses and mappings with own attributes.
Imports nothing of ours and no torch.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any


def children(node: Any) -> list[tuple[Any, Any]] | None:
    """The (key, value) pairs directly inside `node`; None if it is a leaf."""
    if isinstance(node, (list, tuple)):
        return list(enumerate(node))
    if isinstance(node, Mapping):
        return list(node.items())
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return [(field.name, getattr(node, field.name)) for field in dataclasses.fields(node)]
    return None


def rebuilt(node: Any, values: list[Any]) -> Any:
    """A container like `node` whose direct children are `values`, in the order of `children(node)`."""
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return type(node)(*values)
    if isinstance(node, (list, tuple)):
        return type(node)(values)
    if isinstance(node, Mapping):
        return _rebuilt_mapping(node, values)
    result = copy.copy(node)
    for field, value in zip(dataclasses.fields(node), values, strict=True):
        object.__setattr__(result, field.name, value)  # also for frozen dataclasses
    return result


def _rebuilt_mapping(node: Mapping[Any, Any], values: list[Any]) -> Any:
    pairs = dict(zip(node, values, strict=True))
    if type(node) is dict:
        return pairs
    if not isinstance(node, MutableMapping):
        return type(node)(pairs)  # type: ignore[call-arg]
    result = copy.copy(node)  # keeps a default factory and attributes that the constructor does not take
    for key, value in pairs.items():
        result[key] = value
    return result


def map_leaves(function: Callable[[Any], Any], node: Any) -> Any:
    """`node` with every leaf replaced by `function(leaf)`; `node` itself if no leaf is replaced by another object."""
    inside = children(node)
    if inside is None:
        return function(node)
    values = [map_leaves(function, value) for _, value in inside]
    if all(new is old for new, (_, old) in zip(values, inside, strict=True)):
        return node
    return rebuilt(node, values)


def leaves(node: Any) -> Iterator[Any]:
    """The leaves, in a fixed order."""
    inside = children(node)
    if inside is None:
        yield node
        return
    for _, value in inside:
        yield from leaves(value)


def with_leaves(node: Any, values: Iterator[Any]) -> Any:
    """`node` with its leaves taken from `values`, in the order of `leaves(node)`."""
    return map_leaves(lambda _: next(values), node)
