"""Folders that are made if they are not there: two processes may find that at once, and one of them fails."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.output import EXISTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_MAKES = frozenset({"os.makedirs", "os.mkdir"})
_ASKS = frozenset({"exists", "is_dir"})


def may_be_there(facts: Facts, unit: Unit) -> list[ast.Call]:
    """The calls `os.makedirs(path)` of a unit under `if not os.path.exists(path):`, where `exist_ok` says the same."""
    return [call for node in facts.own(unit).of(ast.If) if (call := if_missing(facts, node)) is not None]


def if_missing(facts: Facts, node: ast.AST) -> ast.Call | None:
    """The call of `if not os.path.exists(path): os.makedirs(path)`, whatever else is asked."""
    if not isinstance(node, ast.If):
        return None
    paths, missing = _not_there(facts, node)
    for statement in missing:
        made = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(made, ast.Call) and _path_made(facts, made) in paths:
            return made
    return None


def _not_there(facts: Facts, node: ast.If) -> tuple[set[str], Sequence[ast.stmt]]:
    """The paths that a branch asks for, and what runs where they are not there."""
    if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And):
        nots = (asked for asked, is_so in map(said, node.test.values) if not is_so)
        return {path for each in nots if (path := _path_asked(facts, each)) is not None}, node.body
    path, _, missing = asked_for(facts, node)
    return {path} if path is not None else set(), missing


def only_folder(facts: Facts, node: ast.stmt) -> ast.Call | None:
    """That call, where the statement does nothing else."""
    is_all = isinstance(node, ast.If) and len(node.body) == 1 and not node.orelse
    return if_missing(facts, node) if is_all else None


def path_of(made: ast.Call) -> ast.expr:
    """The path of the folder that such a call makes."""
    if made.args:
        return made.args[0]
    assert isinstance(made.func, ast.Attribute)
    return made.func.value


def asked_for(facts: Facts, node: ast.If) -> tuple[str | None, Sequence[ast.stmt], Sequence[ast.stmt]]:
    """The path that a branch asks for, what runs where it is there, and what runs where it is not."""
    asked, is_there = said(node.test)
    there, missing = (node.body, node.orelse) if is_there else (node.orelse, node.body)
    return _path_asked(facts, asked), there, missing


def said(test: ast.expr) -> tuple[ast.expr, bool]:
    """What a test asks for, and whether it holds if that is so: without `not`, `== False`, `is True`."""
    is_so = True
    while True:
        match test:
            case ast.UnaryOp(ast.Not(), inner):
                test, is_so = inner, not is_so
            case ast.Compare(inner, [ast.Eq() | ast.Is()], [ast.Constant(bool() as value)]):
                test, is_so = inner, is_so is value
            case ast.Compare(inner, [ast.NotEq() | ast.IsNot()], [ast.Constant(bool() as value)]):
                test, is_so = inner, is_so is not value
            case _:
                return test, is_so


def made_under(facts: Facts, made: ast.Call) -> str | None:
    """The path of the folder that a call makes, however it does it."""
    is_path = isinstance(made.func, ast.Attribute) and made.func.attr == "mkdir" and not facts.targets(made)
    if facts.called(made) & _MAKES:
        return ast.unparse(made.args[0]) if made.args else None
    return ast.unparse(made.func.value) if is_path and isinstance(made.func, ast.Attribute) else None


def _path_asked(facts: Facts, asked: ast.expr) -> str | None:
    """The path of `os.path.exists(path)`, `path.exists()`."""
    if not isinstance(asked, ast.Call) or asked.keywords:
        return None
    if facts.called(asked) & EXISTS and len(asked.args) == 1:
        return ast.unparse(asked.args[0])
    if isinstance(asked.func, ast.Attribute) and asked.func.attr in _ASKS and not asked.args:
        return None if facts.targets(asked) else ast.unparse(asked.func.value)
    return None


def _path_made(facts: Facts, made: ast.Call) -> str | None:
    """The path of `os.makedirs(path)`, `path.mkdir(parents=True)`, where it must not be there."""
    if facts.called(made) & _MAKES:
        is_plain = len(made.args) == 1 and not made.keywords
        return ast.unparse(made.args[0]) if is_plain else None
    if isinstance(made.func, ast.Attribute) and made.func.attr == "mkdir" and not made.args:
        is_open = all(keyword.arg in ("parents", "mode") for keyword in made.keywords)
        return ast.unparse(made.func.value) if is_open and not facts.targets(made) else None
    return None
