"""What one rule writes for one program: edits into the plan, and findings into the report, under the rule's code."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from migrate.analysis.syntax import runs_after
from migrate.analysis.units import Module
from migrate.edits.parts import ITSELF, RECEIVER, Selector, argument
from migrate.edits.quotes import quoted
from migrate.programs.home.access import NAME
from migrate.report.model import Finding, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from migrate.analysis.facts import Facts
    from migrate.edits.plan import Plan

Part = str | Selector | ast.expr


@dataclass(slots=True)
class Draft:
    """The pen that a rule is given. Every edit belongs to the program's group: all of them are made, or none."""

    plan: Plan
    facts: Facts
    code: str
    group: str
    loop: str
    findings: list[Finding]

    # --- expressions ------------------------------------------------------------------------------------------------

    def rewrite(self, node: ast.expr, template: str, **parts: Part) -> None:
        """Replace an expression; `{name}` in the template is a part: source text, or a piece of the node itself."""
        self.plan.rewrite(node, template, rule=self.code, group=self.group, **parts)

    def unwrap_call(self, node: ast.Call, position: int = 0) -> None:
        """`f(x)` gives way to `x`."""
        self.rewrite(node, "{value}", value=argument(position))

    def drop_method(self, node: ast.Call) -> None:
        """`x.method(...)` gives way to `x`."""
        self.rewrite(node, "{value}", value=RECEIVER)

    def wrap_receiver(self, node: ast.Call, template: str) -> None:
        """Replace a method call by a template around its receiver, `{it}`."""
        self.rewrite(node, template, it=RECEIVER)

    def wrap(self, node: ast.expr, template: str) -> None:
        """Put an expression into a template that has one hole, `{it}`."""
        self.rewrite(node, template, it=ITSELF)

    def join(self, node: ast.expr, word: str, parts: Mapping[str, ast.expr]) -> None:
        """Replace an expression by some of its parts with a word between them."""
        template = word.join(f"{{{name}}}" for name in parts)
        self.plan.rewrite(node, template, rule=self.code, group=self.group, **parts)

    def lift(self, node: ast.expr, name: str, *, above: ast.stmt) -> None:
        """Compute an expression above a statement, which reads it under a name."""
        self.plan.lift(node, name, above=above, rule=self.code, group=self.group)

    # --- statements -------------------------------------------------------------------------------------------------

    def replace(self, statement: ast.stmt, code: str) -> None:
        """Replace a statement by others."""
        self.plan.replace(statement, code, rule=self.code, group=self.group)

    def remove(self, statement: ast.stmt) -> None:
        """Take a statement out; a block that is emptied goes with it where that is safe."""
        self.plan.remove(statement, rule=self.code, group=self.group)

    def fold(self, statement: ast.If, keep: Literal["body", "orelse"]) -> None:
        """Replace an `if` by the statements of one of its branches."""
        self.plan.fold(statement, keep=keep, rule=self.code, group=self.group)

    def before(self, statement: ast.stmt, code: str, *, spaced: bool = False, late: bool = False) -> None:
        """Put statements before one; `late`: below what other rules put there."""
        self.plan.insert_before(statement, code, rule=self.code, group=self.group, spaced=spaced, late=late)

    def after(self, statement: ast.stmt, code: str, *, spaced: bool = False, late: bool = False) -> None:
        """Put statements after one; `late`: below what other rules put there."""
        if rest := runs_after(statement):  # that is where the loop is over
            self.before(rest[0], code)
            return
        self.plan.insert_after(statement, code, rule=self.code, group=self.group, spaced=spaced, late=late)

    def guard(self, statements: Sequence[ast.stmt], test: str) -> None:
        """Put neighbouring statements under `if test:`."""
        self.plan.guard(statements[0], statements[-1], test, rule=self.code, group=self.group)

    def unwrap(self, statement: ast.If | ast.With) -> None:
        """Let a statement without else part give way to its body."""
        self.plan.unwrap(statement, rule=self.code, group=self.group)

    def wrap_block(self, statements: Sequence[ast.stmt], header: str) -> None:
        """Put neighbouring statements into a block, such as `with x:`."""
        self.plan.wrap(statements[0], statements[-1], header, rule=self.code, group=self.group)

    # --- signatures and imports -------------------------------------------------------------------------------------

    def add_keyword(self, call: ast.Call, name: str, value: str) -> None:
        """Add a keyword argument to a call."""
        self.plan.add_argument(call, value, keyword=name, position=None, rule=self.code, group=self.group)

    def add_positional(self, call: ast.Call, position: int, value: str) -> None:
        """Add a positional argument to a call."""
        self.plan.add_argument(call, value, keyword=None, position=position, rule=self.code, group=self.group)

    def replace_argument(self, call: ast.Call, old: ast.expr | ast.keyword, value: str) -> None:
        """Give a call another argument in the place of one; a keyword takes the name of the accelerator's parameter."""
        keyword = NAME if isinstance(old, ast.keyword) else None
        self.plan.replace_argument(call, old, value, keyword=keyword, rule=self.code, group=self.group)

    def remove_argument(self, call: ast.Call, given: ast.expr | ast.keyword) -> None:
        """Take an argument out of a call."""
        self.plan.remove_argument(call, given, rule=self.code, group=self.group)

    def rename_parameter(self, parameter: ast.arg, name: str) -> None:
        """Give a parameter another name, in the signature only; what was said of its type no longer holds."""
        self.plan.rename_parameter(parameter, name, rule=self.code, group=self.group)

    def add_parameter(self, function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, after: str) -> None:
        """Add a parameter after another one (the empty string: as the first)."""
        self.plan.add_parameter(function, name, after=after, rule=self.code, group=self.group)

    def remove_parameter(self, parameter: ast.arg) -> None:
        """Take a parameter out of the signature of its function."""
        function = self.facts.tree(parameter).function(parameter)
        assert isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        self.plan.remove_parameter(function, parameter, rule=self.code, group=self.group)

    def quoted(self, node: ast.AST, code: str) -> str:
        """The code with the quotes that the file of a node uses most; code is written with single quotes."""
        return quoted(code, self.facts.file(node).content)

    def add_import(self, node: ast.AST, module: str, name: str | None = None) -> None:
        """Import a name, or the module itself, in a node's file, above it where it runs while the file is loaded."""
        used = getattr(node, "lineno", None) if isinstance(self.facts.unit(node), Module) else None
        self.plan.add_import(self.facts.file(node).path, module, name, used=used, rule=self.code, group=self.group)

    def drop_import(self, statement: ast.Import | ast.ImportFrom, name: str) -> None:
        """Take a name out of an import."""
        self.plan.drop_import(statement, name, rule=self.code, group=self.group)

    # --- findings ---------------------------------------------------------------------------------------------------

    def note(self, node: ast.AST, message: str, hint: str = "") -> None:
        """Say something worth knowing about a place."""
        self._say(node, message, hint, Kind.NOTE)

    def left(self, node: ast.AST, message: str, way_out: str, code: str = "") -> None:
        """Say that something is left to a person, why, and how to do it; `code` where it is another rule's matter."""
        self._say(node, message, way_out, Kind.LEFT, code)

    def _say(self, node: ast.AST, message: str, hint: str, kind: Kind, code: str = "") -> None:
        self.findings.append(finding(self.facts, node, code or self.code, message, hint, kind, self.loop))


def finding(
    facts: Facts,
    node: ast.AST,
    code: str,
    message: str,
    hint: str,
    kind: Kind,
    loop: str | None = None,
    converts: bool | None = None,
) -> Finding:
    """A finding at a node."""
    file = facts.file(node)
    line, column, end = file.place(node)  # type: ignore[arg-type]
    return Finding(code, file.path, line, column, end, message, hint, kind, converts, loop)
