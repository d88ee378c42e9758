"""Where gradients are off by what stands around the code: `with torch.no_grad():`, `@torch.inference_mode()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.training import NO_GRAD
from migrate.analysis.syntax import FUNCTIONS, arguments

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import FunctionNode


def without_gradients(facts: Facts, node: ast.AST) -> bool:
    """Whether a node stands under `with torch.no_grad()`, or in a function that is decorated with it."""
    for above in facts.tree(node).up(node):
        if isinstance(above, (ast.With, ast.AsyncWith)):
            given = (item.context_expr for item in above.items)
            if any(isinstance(context, ast.Call) and facts.called(context) & NO_GRAD for context in given):
                return True
        if isinstance(above, FUNCTIONS) and is_decorated_without(facts, above):
            return True
    return False


def is_decorated_without(facts: Facts, node: FunctionNode) -> bool:
    """Whether a function is decorated with `@torch.no_grad()`."""
    for decorator in getattr(node, "decorator_list", ()):
        named = decorator.func if isinstance(decorator, ast.Call) else decorator
        if facts.names(named) & NO_GRAD:
            return True
    return False


def is_given_false(call: ast.Call) -> bool:
    """`set_grad_enabled(False)`, `model.train(False)`."""
    first = next(iter(arguments(call)), None)
    return isinstance(first, ast.Constant) and first.value is False
