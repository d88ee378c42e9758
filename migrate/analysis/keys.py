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
        if len(given) != 1 or not (first := paired_keys(given[0]) or keys_of(state, given[0], depth - 1)):
            return []
    elif (written := written_in(source)) is None or len(first := texts_in(written)) < len(written):
        return []
    return [*first, *(key for key in inside if key[:1] != "<" and key not in first)]


def written_keys(state: State, held: ast.AST) -> list[str]:
    """The keys of a dictionary that is written out whole, in their order; none: there may be fewer, or others."""
    source = state.originals.get(held, held)
    keys = keys_of(state, held) if SHORTENED not in state.held(held) else []
    if isinstance(source, ast.DictComp):
        given = [value.origin for value in state.held(held).get(KEYS) or () if value.origin is not None]
        is_whole = len(given) == 1 and not source.generators[0].ifs
        written = paired_keys(given[0]) or keys_of(state, given[0]) if is_whole else []
    else:
        written = texts_in(written_in(source) or [])
    return keys if keys == written else []


def written_in(made: ast.AST) -> list[ast.expr | None] | None:
    """The keys that are written where a dictionary is made: `{"train": x}`, `dict(train=x)`."""
    if isinstance(made, ast.Dict):
        return made.keys
    is_called = isinstance(made, ast.Call) and isinstance(made.func, ast.Name) and made.func.id == "dict"
    if not isinstance(made, ast.Call) or not is_called:
        return None
    pairs = paired_keys(made.args[0]) if len(made.args) == 1 and not made.keywords else []
    if made.args:
        return [ast.Constant(key) for key in pairs] or None
    return [None if each.arg is None else ast.Constant(each.arg) for each in made.keywords]


def paired_keys(over: ast.AST) -> list[str]:
    """The keys that are written out beside their items."""
    return [key for key, _ in pairs_in(over)]


def pairs_in(over: ast.AST) -> list[tuple[str, ast.expr]]:
    """The keys and items that are written out in pairs, `[("train", x), ("val", y)]`; none if they are not all.

    Or beside each other: `zip(("train", "val"), (x, y))`.
    """
    match over:
        case ast.Call(
            func=ast.Name("zip"), args=[ast.List() | ast.Tuple() as names, ast.List() | ast.Tuple() as items]
        ):
            keys = texts_in(names.elts)
            is_each = len(keys) == len(items.elts) and not any(isinstance(item, ast.Starred) for item in items.elts)
            return list(zip(keys, items.elts, strict=True)) if is_each else []
    parts = over.elts if isinstance(over, (ast.List, ast.Tuple)) else []
    pairs = [each.elts for each in parts if isinstance(each, ast.Tuple) and len(each.elts) == _PAIR]
    keys = texts_in([pair[0] for pair in pairs])
    return list(zip(keys, (pair[1] for pair in pairs), strict=True)) if keys and len(pairs) == len(parts) else []


_PAIR = 2


def texts_in(nodes: Sequence[ast.expr | None]) -> list[str]:
    """The texts that expressions are; none if one of them is something else."""
    found = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return found if len(found) == len(nodes) == len(set(found)) else []
