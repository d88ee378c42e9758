"""Edits of one stage, under one code and in one group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import ast

    from migrate.edits.parts import Part
    from migrate.edits.plan import Plan

CODE = "MIG111"


@dataclass(frozen=True, slots=True)
class Pen:
    """A plan, without the arguments that are always the same here."""

    plan: Plan

    def rewrite(self, node: ast.expr, template: str, **parts: Part) -> None:
        """Replace an expression."""
        self.plan.rewrite(node, template, rule=CODE, group="", **parts)

    def replace(self, statement: ast.stmt, code: str, **parts: Part) -> None:
        """Replace a statement."""
        self.plan.replace(statement, code, rule=CODE, group="", **parts)

    def remove(self, statement: ast.stmt) -> None:
        """Take a statement out."""
        self.plan.remove(statement, rule=CODE)

    def fold(self, statement: ast.If, keep: Literal["body", "orelse"]) -> None:
        """Keep one branch of an `if`."""
        self.plan.fold(statement, keep=keep, rule=CODE)

    def unwrap(self, statement: ast.With) -> None:
        """Keep the body of a `with`."""
        self.plan.unwrap(statement, rule=CODE)

    def before(self, statement: ast.stmt, code: str, *, spaced: bool = False) -> None:
        """Put statements before one."""
        self.plan.insert_before(statement, code, rule=CODE, spaced=spaced)

    def after(self, statement: ast.stmt, code: str) -> None:
        """Put statements after one."""
        self.plan.insert_after(statement, code, rule=CODE)

    def remove_argument(self, call: ast.Call, given: ast.expr | ast.keyword) -> None:
        """Take an argument from a call."""
        self.plan.remove_argument(call, given, rule=CODE)

    def replace_argument(self, call: ast.Call, given: ast.expr | ast.keyword, value: str, keyword: str | None) -> None:
        """Give an argument another value, and another keyword where one is given."""
        self.plan.replace_argument(call, given, value, keyword=keyword, rule=CODE)

    def add_keyword(self, call: ast.Call, name: str, value: str) -> None:
        """Give a call one more argument."""
        self.plan.add_argument(call, value, keyword=name, rule=CODE)

    def remove_parameter(self, function: ast.FunctionDef | ast.AsyncFunctionDef, parameter: ast.arg) -> None:
        """Take a parameter from a function."""
        self.plan.remove_parameter(function, parameter, rule=CODE)

    def add_import(self, path: str, module: str) -> None:
        """Import a module in a file."""
        self.plan.add_import(path, module, rule=CODE)

    def drop_import(self, statement: ast.Import | ast.ImportFrom, name: str) -> None:
        """Take a name from an import."""
        self.plan.drop_import(statement, name, rule=CODE)
