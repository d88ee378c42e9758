"""Folders that are made if they are not there: two processes may find that at once, and one of them fails."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_EXISTS = frozenset({"os.path.exists", "os.path.isdir", "os.path.isfile"})
_MAKES = frozenset({"os.makedirs", "os.mkdir"})


def may_be_there(facts: Facts, unit: Unit) -> list[ast.Call]:
    """The calls `os.makedirs(path)` of a unit under `if not os.path.exists(path):`, where `exist_ok` says the same."""
    return [call for node in facts.own(unit) if (call := if_missing(facts, node)) is not None]


def if_missing(facts: Facts, node: ast.AST) -> ast.Call | None:
    """The call of `if not os.path.exists(path): os.makedirs(path)`."""
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.UnaryOp) or not isinstance(node.test.op, ast.Not):
        return None
    asked = node.test.operand
    if not isinstance(asked, ast.Call) or not facts.called(asked) & _EXISTS or len(asked.args) != 1:
        return None
    for statement in node.body:
        made = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(made, ast.Call) and facts.called(made) & _MAKES and len(made.args) == 1 and not made.keywords:
            if ast.unparse(made.args[0]) == ast.unparse(asked.args[0]):
                return made
    return None
