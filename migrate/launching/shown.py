"""The value that a notebook shows below a cell: that of the last expression in it.

evaluate(model, loader)      ->   def evaluation():
                                      ...
                                      return evaluate(model, loader)

                                  notebook_launcher(evaluation)        # is the last expression now
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import last_line
from migrate.launching.names import DEFINITIONS, root_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.launching.view import Region, View

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SILENT = frozenset("print setattr delattr input".split())  # functions that nobody reads a value of
#: Methods that give nothing, or the object itself.
_SILENT_METHODS = frozenset(
    """add append backward clear close cuda eval extend insert print remove save show sort step to train update
    wait_for_everyone write zero_grad""".split()
)


def shown(view: View, region: Region, prepared: Collection[str]) -> ast.expr | None:
    """The expression of a region whose value its cell shows; None where it shows none, or one that cannot be sent."""
    last = region.statements[-1]
    here = [node for node, cell in view.cells.items() if cell == region.cell]
    if not isinstance(last, ast.Expr) or here[-1] is not last or _is_hushed(view, last):
        return None
    return last.value if _says_something(view, last.value, prepared) else None


def _is_hushed(view: View, node: ast.Expr) -> bool:
    """`compute();`"""
    (line,) = view.text.of(last_line(node), last_line(node))
    return line.encode()[node.end_col_offset or 0 :].decode().lstrip().startswith(";")


def _says_something(view: View, value: ast.expr, prepared: Collection[str]) -> bool:
    if not isinstance(value, ast.Call):
        return root_of(value) is None or isinstance(value, ast.Subscript)
    if isinstance(value.func, ast.Attribute):
        methods = list(_methods(view, value.func.attr))
        if not methods:
            return value.func.attr not in _SILENT_METHODS and root_of(value.func) not in prepared
        return any(_gives(node, value, prepared) for node in methods)
    if isinstance(value.func, ast.Name):
        if isinstance(node := view.definitions.get(value.func.id), _FUNCTIONS):
            return _gives(node, value, prepared)
        return value.func.id not in _SILENT and not isinstance(node, ast.ClassDef)
    return False


def _methods(view: View, name: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The methods of a name that classes of the notebook have."""
    for node in view.definitions.values():
        for each in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(each, _FUNCTIONS) and each.name == name:
                yield each


def _gives(node: ast.FunctionDef | ast.AsyncFunctionDef, call: ast.Call, prepared: Collection[str]) -> bool:
    """Whether a function returns a value, which is no generator and not what it was given or what is prepared."""
    inner = list(_own(node))
    if isinstance(node, ast.AsyncFunctionDef) or any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in inner):
        return False
    values = [each.value for each in inner if isinstance(each, ast.Return) and each.value is not None]
    given = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    parts = [part for value in values for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
    is_theirs = any(root_of(part) in {*given, *prepared, "self"} for part in parts)
    return not is_theirs and any(not (isinstance(part, ast.Constant) and part.value is None) for part in parts)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """What belongs to a function itself, and not to one inside of it."""
    for each in ast.iter_child_nodes(node):
        yield each
        if not isinstance(each, (*DEFINITIONS, ast.Lambda)):
            yield from _own(each)
