"""What rows, texts and objects are put together from.

[epoch, loss.item()]    {"loss": loss.item()}    f"{epoch}: {loss.item()}"    Row(epoch, loss.item())
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import arguments
from migrate.programs.values.assigned import assigned
from migrate.programs.values.numbers import is_text
from migrate.programs.values.scopes import bound_in_scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts

_DISPLAYS = (ast.Tuple, ast.List, ast.Set, ast.Dict)
_KEEPING = frozenset(f"builtins.{name}" for name in "dict list tuple set str repr format round zip enumerate".split())
_RECORDS = frozenset({"collections.namedtuple", "typing.NamedTuple", "dataclasses.make_dataclass"})
_ON_TEXT = frozenset({"format", "join"})
_DEEPEST = 4


def made_of(facts: Facts, node: ast.expr, depth: int = _DEEPEST) -> Iterator[ast.expr]:
    """An expression, and what is in the rows, texts and objects that it puts together, also under a name."""
    yield node
    for part in _parts(facts, node) if depth > 0 else ():
        yield from made_of(facts, part, depth - 1)


def entries(node: ast.expr) -> Iterator[ast.expr]:
    """What a row that is written out holds, `(loss.item(), accuracy)`; of everything else that itself."""
    match node:
        case ast.Tuple(elts=held) | ast.List(elts=held) | ast.Dict(values=held) if held:
            for each in held:
                yield from entries(each)
        case _:
            yield node


def _parts(facts: Facts, node: ast.expr) -> Sequence[ast.expr]:
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts) | ast.JoinedStr(values=parts):
            return parts
        case ast.Dict(keys=keys, values=values):
            return [*(key for key in keys if key is not None), *values]
        case ast.Starred(value=value) | ast.FormattedValue(value=value):
            return [value]
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod(), right=right) if _holds(facts, left) or _holds(facts, right):
            return [left, right]
        case ast.Call() if _keeps(facts, node):
            return arguments(node)
        case ast.Name(ctx=ast.Load()):
            return [value for value in assigned(facts, node) if value is not None and _is_followed(facts, node, value)]
    return []


def _is_followed(facts: Facts, name: ast.Name, value: ast.expr) -> bool:
    """Whether what a name is given is put together, or is a name in a function that returns it beside others."""
    return _holds(facts, value) or (isinstance(value, ast.Name) and facts.unit(value) is not facts.unit(name))


def _holds(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression is text, or a row that is written out."""
    return isinstance(node, _DISPLAYS) or is_text(facts, node) or (isinstance(node, ast.Call) and _keeps(facts, node))


def _keeps(facts: Facts, call: ast.Call) -> bool:
    """Whether a call makes an object, a row or a text of what it is given."""
    is_made = Role.CLASS in roles(facts.values(call.func)) and Role.INSTANCE in roles(facts.values(call))
    if is_made or facts.called(call) & _KEEPING:
        return True
    if isinstance(call.func, ast.Attribute):
        return call.func.attr in _ON_TEXT and is_text(facts, call.func.value)
    bound = bound_in_scope(facts, call.func) if isinstance(call.func, ast.Name) else ()
    made = (getattr(binding.statement, "value", None) for binding in bound)
    return any(isinstance(each, ast.Call) and bool(facts.called(each) & _RECORDS) for each in made)
