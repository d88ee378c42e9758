"""Library names that no table has, by what the program does with what they make.

What gives its `parameters()`, and is called, told `train()` or `eval()`, moved, or kept by its `state_dict()`, is a
model: nothing else has these. The rows that follow are those of one run.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from migrate.analysis.known.table import Makes
from migrate.analysis.known.training import FLUENT
from migrate.analysis.roles import NOTHING, Role
from migrate.analysis.state import ANY
from migrate.analysis.units import Class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from migrate.analysis.roles import Value
    from migrate.analysis.state import State

#: What a model is told, beside what is said of others, too; flows of a library train by `log_prob()` alone.
_OF_MODELS = frozenset({"train", "eval", "to", "cuda", "state_dict", "load_state_dict"})


def rows(state: State) -> tuple[Makes, ...]:
    """Rows for the functions and classes of unknown libraries that make models."""
    asked = set(_receivers(state, lambda call: _method(call) == "parameters" and not call.args))
    if not asked:
        return ()
    run = set(_receivers(state, lambda call: _method(call) in _OF_MODELS)) | set(_run(state))
    names = {name for value in asked & run for name in _names(state, value)}
    return tuple(Makes(name, Role.MODEL) for name in sorted(names))


def _method(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _receivers(state: State, wanted: Callable[[ast.Call], bool]) -> Iterator[Value]:
    for call in state.calls:
        if isinstance(call.func, ast.Attribute) and wanted(call):
            yield from _made(state, call.func.value)


def _run(state: State) -> Iterator[Value]:
    for call in state.calls:
        yield from _made(state, call.func)


def _made(state: State, node: ast.expr, depth: int = 6) -> Iterator[Value]:
    """What an expression may be, as it was made: without `to(device)` and the like."""
    for value in state.values.get(node, NOTHING):
        yield value
        moved = value.origin if value.role is Role.UNKNOWN and isinstance(value.origin, ast.Call) else None
        if depth and moved is not None and moved is not node and _method(moved) in FLUENT:
            assert isinstance(moved.func, ast.Attribute)
            yield from _made(state, moved.func.value, depth - 1)


def _names(state: State, value: Value) -> Iterator[str]:
    """The library names by which something was made: its maker, or the unknown classes that its class derives from."""
    if value.role is Role.UNKNOWN and isinstance(value.origin, ast.Call) and value.unit is None:
        is_new = not _is_given_model(state, value.origin) and not _is_taken_apart(state, value.origin)
        if is_new and _is_unknown(state, value.name):
            yield value.name
    elif value.role is Role.INSTANCE and isinstance(value.unit, Class):
        bases = value.unit.library_bases()
        if value.unit.lookup("forward") and not any(state.known.row(base) for base in bases):
            yield from (base for base in bases if _is_unknown(state, base))


def _is_unknown(state: State, name: str) -> bool:
    library, *rest = name.split(".")
    if not rest or ANY in name or library == "torch" or library in sys.stdlib_module_names:
        return False
    return state.known.row(name) is None


def _is_given_model(state: State, call: ast.Call) -> bool:
    """Whether a call may give back a model that it is given, or a part of it."""
    given = (*call.args, *(keyword.value for keyword in call.keywords))
    return any(value.role is Role.MODEL for each in given for value in state.values.get(each, NOTHING))


def _is_taken_apart(state: State, call: ast.Call) -> bool:
    """Whether a call gives several things, of which one is meant: `model, transform = library.load()`."""
    assigned = (binding.statement for binding in state.bindings.values())
    return any(
        isinstance(statement, ast.Assign)
        and statement.value is call
        and any(isinstance(target, (ast.Tuple, ast.List)) for target in statement.targets)
        for statement in assigned
    )
