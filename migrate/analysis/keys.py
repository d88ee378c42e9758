"""The keys that lists and dictionaries are known to have: those that are written out, in their order."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.state import ELEMENT, KEYS, MIXED, SHORTENED, State

if TYPE_CHECKING:
    from collections.abc import Sequence


def keys_of(state: State, held: ast.AST, depth: int = 4) -> list[str]:
    """The keys that a list, or a dictionary, is known to have, in their order; none: there may be others."""
    if isinstance(held, (ast.List, ast.Tuple)):
        return texts_in(held.elts)
    inside = {**state.held(held), **state.unfilled.get(held, {})}
    source = state.originals.get(held, held)
    if not depth or ELEMENT in inside or MIXED in inside:
        return []
    first: list[str] = []
    if isinstance(source, ast.DictComp):
        given = [value.origin for value in inside.get(KEYS) or () if value.origin is not None]
        if len(given) != 1 or not (first := keys_of(state, given[0], depth - 1)):
            return []
    elif not isinstance(source, ast.Dict) or len(first := texts_in(source.keys)) < len(source.keys):
        return []
    return [*first, *(key for key in inside if key[:1] != "<" and key not in first)]


def written_keys(state: State, held: ast.AST) -> list[str]:
    """The keys of a dictionary that is written out whole, in their order; none: there may be fewer, or others."""
    source = state.originals.get(held, held)
    keys = keys_of(state, held) if SHORTENED not in state.held(held) else []
    if isinstance(source, ast.DictComp):
        given = [value.origin for value in state.held(held).get(KEYS) or () if value.origin is not None]
        written = keys_of(state, given[0]) if len(given) == 1 and not source.generators[0].ifs else []
    else:
        written = texts_in(source.keys) if isinstance(source, ast.Dict) else []
    return keys if keys == written else []


def texts_in(nodes: Sequence[ast.expr | None]) -> list[str]:
    """The texts that expressions are; none if one of them is something else."""
    found = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return found if len(found) == len(nodes) == len(set(found)) else []
