"""Names for parts of other objects: what is changed by the one is changed in the other.

for meter, value in zip(meters, values):       meters, by way of `meter`
    meter.update(value)
best = results["best"]                         results, by way of `best`
best.append(loss)
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.launching.names import bound, root_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Methods of containers, and of what adds up, that change them.
_CHANGES = frozenset(
    """add append appendleft clear discard extend insert log pop popitem popleft push record remove reset reverse
    setdefault sort step store update""".split()
)
_GOES_ON = frozenset("zip enumerate reversed sorted list tuple iter".split())  # what they give are the objects' parts
_OWN = frozenset({"items", "values", "get", "setdefault"})


def changed_in_place(nodes: Sequence[ast.AST]) -> set[str]:
    """The names of what some code changes in place."""
    return {name for node in nodes for each in ast.walk(node) for name in _changed(each)}


def changed_by_part(nodes: Sequence[ast.AST]) -> set[str]:
    """The names of what some code changes by names that it gives to parts of them."""
    inner = [each for node in nodes for each in ast.walk(node)]
    parts = [pair for node in inner for pair in _pairs(node)]
    found: set[str] = set()
    waiting = {name for node in inner for name in _changed(node)}
    while waiting:
        wholes = set().union(*(of for names, of in parts if names & waiting)) - found
        found |= wholes
        waiting = wholes
    return found


def _pairs(node: ast.AST) -> Iterator[tuple[set[str], set[str]]]:
    """Names, and those of what they may be parts of."""
    if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        yield bound([node.target]), _wholes(node.iter)
    elif isinstance(node, ast.Assign):
        yield bound(node.targets), _wholes(node.value)


def _wholes(node: ast.expr) -> set[str]:
    if isinstance(node, (ast.Tuple, ast.List, ast.Dict, ast.IfExp)):
        return set().union(*(_wholes(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)))
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _GOES_ON:
            return set().union(*map(_wholes, node.args))
        if isinstance(node.func, ast.Attribute) and node.func.attr in _OWN:
            return _wholes(node.func.value)
        return set()
    return {name} if (name := root_of(node)) is not None else set()


def _changed(node: ast.AST) -> Iterator[str]:
    """The name of what a piece of code changes in place."""
    changed: ast.AST | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
        changed = node.func.value
    elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
        changed = node
    elif isinstance(node, ast.AugAssign):
        changed = node.target
    if changed is not None and (name := root_of(changed)) is not None:
        yield name
