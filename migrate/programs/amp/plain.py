"""What statements come to without mixed precision: no contexts, no scaling. Two branches are compared by it."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from migrate.analysis.facts import Facts

#: What is done with a scaler around a step, and is nothing without it.
_NOTHING = frozenset({"update", "unscale_"})


def scaled_call(facts: Facts, node: ast.AST, scaler: ast.AST) -> str | None:
    """The method of a scaler that a call is of: `step`; None: it is another call."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    return node.func.attr if scaler in origins(facts.receiver(node), Role.SCALER) else None


def without_scaling(
    facts: Facts, block: Sequence[ast.stmt], scaler: ast.AST, contexts: Collection[ast.AST]
) -> list[str]:
    """The statements as they would be written without the scaler and the contexts, for comparison."""
    root = ast.Module(list(block), [])
    copied = copy.deepcopy(root)
    marks = {id(new): old for old, new in zip(ast.walk(root), ast.walk(copied), strict=True)}
    made = _Plain(facts, scaler, contexts, marks).visit(copied)
    return [ast.dump(statement) for statement in made.body]


class _Plain(ast.NodeTransformer):
    def __init__(self, facts: Facts, scaler: ast.AST, contexts: Collection[ast.AST], marks: dict[int, ast.AST]) -> None:
        self._facts = facts
        self._scaler = scaler
        self._contexts = contexts
        self._marks = marks

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        is_context = all(self._marks[id(item.context_expr)] in self._contexts for item in node.items)
        self.generic_visit(node)
        return node.body if is_context else node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if self._method(node.value) in _NOTHING:
            return None
        self.generic_visit(node)
        return node

    def visit_Pass(self, node: ast.Pass) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        """`from torch.cuda.amp import autocast`, where that is needed."""
        return None if (node.module or "").startswith(("torch.cuda.amp", "torch.amp")) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        method = self._method(node)
        self.generic_visit(node)
        if method == "scale" and len(node.args) == 1:
            return node.args[0]
        if method == "step" and node.args:
            return ast.Call(ast.Attribute(node.args[0], "step", ast.Load()), node.args[1:], node.keywords)
        return node

    def _method(self, node: ast.AST) -> str | None:
        original = self._marks.get(id(node))
        return None if original is None else scaled_call(self._facts, original, self._scaler)
