"""Cells that give a name the object which it has: `model = train(model, loader)`, where `train` returns its model.

What the notebook keeps is then its own object with the state of the one that was trained. Another object would leave
the optimizers of later cells with the one from before.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.training import GIVES_ITSELF
from migrate.analysis.syntax import own_nodes
from migrate.launching.names import bound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def stays(name: str, statements: Sequence[ast.stmt], definitions: Mapping[str, ast.stmt]) -> bool:
    """Whether a name still means the object that it had, whatever of some statements gives it a value."""
    giving = [node for node in statements if name in bound([node])]
    return all(isinstance(node, ast.Assign) and _gives_back(node, name, definitions) for node in giving)


def _gives_back(node: ast.Assign, name: str, definitions: Mapping[str, ast.stmt]) -> bool:
    call = node.value
    if len(node.targets) != 1 or not isinstance(call, ast.Call):
        return False
    if _is_itself(call, name):
        return isinstance(node.targets[0], ast.Name)
    function = definitions.get(call.func.id) if isinstance(call.func, ast.Name) else None
    if not isinstance(function, _Function) or function.decorator_list:
        return False
    parameter = _taking(function, call, name)
    places = [at for at, part in enumerate(_parts(node.targets[0])) if isinstance(part, ast.Name) and part.id == name]
    if parameter is None or len(places) != 1 or _is_given_anew(function, parameter):
        return False
    width = len(_parts(node.targets[0]))
    returned = [each.value for each in own_nodes(function) if isinstance(each, ast.Return)]
    given = [_parts(value) for value in returned if value is not None]
    return len(given) == len(returned) > 0 and all(
        len(each) == width and isinstance(part := each[places[0]], ast.Name) and part.id == parameter for each in given
    )


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _taking(function: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, name: str) -> str | None:
    """The parameter that a call hands what has the name."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    passed = [*zip(names, call.args, strict=False), *((keyword.arg, keyword.value) for keyword in call.keywords)]
    found = [parameter for parameter, value in passed if isinstance(value, ast.Name) and value.id == name]
    is_plain = not any(isinstance(each, ast.Starred) for each in call.args)
    return found[0] if len(found) == 1 and is_plain else None


def _is_given_anew(function: ast.FunctionDef | ast.AsyncFunctionDef, parameter: str) -> bool:
    """Whether a function may give a parameter another object; `model = model.train()` is none."""
    giving = [node for node in own_nodes(function) if isinstance(node, ast.stmt) and parameter in _set_by(node)]
    return not all(
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_itself(node.value, parameter)
        for node in giving
    )


def _set_by(node: ast.stmt) -> set[str]:
    """The names that a statement sets itself, and not one inside of it."""
    inner = {n for part in ast.iter_child_nodes(node) if isinstance(part, ast.stmt) for n in bound([part])}
    return bound([node]) - inner


def _is_itself(value: ast.expr, name: str) -> bool:
    """`model.train()`: the object."""
    function = value.func if isinstance(value, ast.Call) else None
    is_method = isinstance(function, ast.Attribute) and function.attr in GIVES_ITSELF
    return is_method and isinstance(function, ast.Attribute) and ast.unparse(function.value) == name
