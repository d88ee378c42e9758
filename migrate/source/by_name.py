"""What a file imports by name, `import_module("engine")`, as far as its own text says which names these are.

Of `f"models.{name}"` it says that the module lies in `models`. Only where it says nothing, any module may be meant.
"""

from __future__ import annotations

import ast
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from migrate.source.reach import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.source.project import SourceFile

_FUNCTIONS = frozenset(word.decode() for word in BY_NAME)
_ANY = "\0"  # in a text: what is not known of it
_OWN = frozenset({"__package__", "__name__"})  # as the package that dots are counted from


class Named(NamedTuple):
    """A module; or, where `start` is not None, what lies below it under names that begin so."""

    module: str
    level: int = 0  # dots before it, as in an import statement
    start: str | None = None


def imported_by_name(file: SourceFile) -> tuple[Named, ...] | None:
    """The modules that are imported so, in order; None where any may be meant."""
    if not any(word in file.content for word in BY_NAME):
        return ()
    if file.error:
        return None
    nodes = list(ast.walk(file.tree))
    calls = [node for node in nodes if isinstance(node, ast.Call) and _name(node.func) in _FUNCTIONS]
    called = {id(call.func) for call in calls}
    if any(_is_handed_on(node) and id(node) not in called for node in nodes):
        return None
    found: dict[Named, None] = {}
    for named in (named for call in calls for named in _named(call)):
        if named is None:
            return None
        found[named] = None
    return tuple(found)


def _named(call: ast.Call) -> Iterator[Named | None]:
    """What a call may import; None: any module."""
    for text in sorted(_texts(call.args[0])) if call.args else [_ANY]:
        name = text.lstrip(".")
        level = len(text) - len(name)
        known, unknown, _ = name.partition(_ANY)
        package, _, start = known.rpartition(".")
        if (level and not _is_own_package(call)) or (unknown and not package and not level):
            yield None
        else:
            yield Named(package, level, start) if unknown else Named(name, level)


def _is_own_package(call: ast.Call) -> bool:
    """Whether the dots before a name are counted from the package of the file, as in an import statement."""
    given = [*call.args[1:2], *(keyword.value for keyword in call.keywords if keyword.arg == "package")]
    return any(isinstance(node, ast.Name) and node.id in _OWN for node in given)


def _is_handed_on(node: ast.AST) -> bool:
    """Whether one of the functions is meant other than by calling it; its import under its own name is not."""
    if isinstance(node, ast.alias):
        return node.name.rpartition(".")[2] in _FUNCTIONS and node.asname not in (None, node.name)
    if isinstance(node, ast.Constant):
        return node.value in _FUNCTIONS
    return isinstance(node, (ast.Name, ast.Attribute)) and _name(node) in _FUNCTIONS


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _texts(node: ast.expr) -> set[str]:
    """Every text that an expression may be, as far as it is made of texts that are written out."""
    if isinstance(node, ast.Constant):
        return {node.value} if isinstance(node.value, str) else {_ANY}
    if isinstance(node, ast.IfExp):
        return _texts(node.body) | _texts(node.orelse)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return {one + other for one in _texts(node.left) for other in _texts(node.right)}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return {_until(text, "%") for text in _texts(node.left)}
    if isinstance(node, ast.JoinedStr):
        return {"".join(parts) for parts in product(*map(_texts, node.values))}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return {_until(text, "{") for text in _texts(node.func.value)}
    return {_ANY}


def _until(form: str, mark: str) -> str:
    """What a form says before its first place."""
    before, place, _ = form.partition(mark)
    return before + _ANY if place else form
