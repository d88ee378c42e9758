"""What is done to the parameters of a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import libcst as cst

from migrate.edits.build import inserted, without
from migrate.edits.edit import AddParameter, RemoveParameter, RenameParameter
from migrate.edits.join import name_of
from migrate.edits.signature import behind

if TYPE_CHECKING:
    from migrate.edits.edit import Operation


def edit_parameters(node: Any, original: cst.CSTNode, operation: Operation) -> Any:
    """A parameter, or a function, with one operation carried out; unchanged by one of another kind."""
    if isinstance(operation, RenameParameter):
        return rename_parameter(node, operation)
    if isinstance(operation, AddParameter):
        return add_parameter(node, cast("cst.FunctionDef", original), operation)
    if isinstance(operation, RemoveParameter):
        return remove_parameter(node, operation)
    return node


def remove_parameter(function: cst.FunctionDef, operation: RemoveParameter) -> cst.FunctionDef:
    """The function without one of its parameters."""
    params = function.params
    for field in ("posonly_params", "params", "kwonly_params"):
        old = getattr(params, field)
        gone = {number for number, param in enumerate(old) if name_of(param.name) == operation.name}
        if gone:
            return function.with_deep_changes(params, **{field: without(old, gone)})
    return function


def rename_parameter(param: cst.Param, operation: RenameParameter) -> cst.Param:
    """The parameter with another name, without what was said of its type."""
    return param.with_changes(name=cst.Name(operation.name), annotation=None)


def add_parameter(function: cst.FunctionDef, original: cst.FunctionDef, operation: AddParameter) -> cst.FunctionDef:
    """The function with one more parameter. `original` still has the names that `after` means."""
    new = cst.Param(cst.Name(operation.name))
    params = function.params
    opening = function.whitespace_before_params
    front = [name_of(param.name) for param in original.params.posonly_params]
    if operation.after is not None and (operation.after in front or (front and not operation.after)):
        place = behind(operation.after, front)
        return function.with_deep_changes(params, posonly_params=inserted(params.posonly_params, place, new, opening))
    names = [name_of(param.name) for param in original.params.params]
    place = len(params.params) if operation.after is None else behind(operation.after, names)
    return function.with_deep_changes(params, params=inserted(params.params, place, new, opening))
