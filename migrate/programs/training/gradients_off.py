"""Where gradients are off by what stands around the code: `with torch.no_grad():`, `@torch.inference_mode()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.training import NO_GRAD, SETS_GRADIENTS, WITH_GRADIENTS
from migrate.analysis.syntax import FUNCTIONS, arguments, binds, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import FunctionNode, Unit


def without_gradients(facts: Facts, node: ast.AST) -> bool:
    """Whether a node stands under `with torch.no_grad()`, or in a function that is decorated with it."""
    for above in facts.tree(node).up(node):
        if _turns_off(facts, above):
            return True
        if isinstance(above, FUNCTIONS) and is_decorated_without(facts, above):
            return True
    return False


def _turns_off(facts: Facts, node: ast.AST) -> bool:
    """`with torch.no_grad():`, perhaps among other contexts."""
    if not isinstance(node, (ast.With, ast.AsyncWith)):
        return False
    given = (item.context_expr for item in node.items)
    return any(isinstance(context, ast.Call) and facts.called(context) & NO_GRAD for context in given)


def turns(facts: Facts, item: ast.withitem) -> bool | None:
    """Whether a context turns gradients off (True) or on (False); None: neither."""
    call = item.context_expr
    if not isinstance(call, ast.Call):
        return None
    called = facts.called(call)
    if called & NO_GRAD:
        return True
    if called & SETS_GRADIENTS:
        return is_given_false(call)
    return False if "torch.enable_grad" in called else None


def turned_on(facts: Facts, units: Iterable[Unit]) -> bool:
    """Whether one of some units switches gradients: what stands around it does not tell whether they are on."""
    switches = SETS_GRADIENTS | WITH_GRADIENTS
    names = (n for unit in units for n in facts.own(unit) if isinstance(n, (ast.Name, ast.Attribute)))
    return any(facts.names(name) & switches for name in names)


def goes_on_with_gradients(facts: Facts, node: ast.AST) -> bool:
    """`with torch.no_grad(): x, y = next(batches)`: whether what a statement binds there is read behind the block.

    Not where a pass over a loader begins there: the accelerator takes that for an evaluation.
    """
    tree = facts.tree(node)
    block = next((above for above in tree.up(node) if _turns_off(facts, above)), None)
    if not isinstance(block, (ast.With, ast.AsyncWith)):
        return False
    if any(isinstance(inner, ast.Call) and "builtins.iter" in facts.called(inner) for inner in walk(block)):
        return False
    last = block.end_lineno or block.lineno
    names = {name for statement in block.body for name in binds(statement)}
    later = sorted(
        (n for n in walk(tree.function(node)) if isinstance(n, ast.Name) and n.id in names and n.lineno > last),
        key=lambda name: (name.lineno, name.col_offset),
    )
    first = {name.id: name for name in reversed(later)}
    return any(isinstance(name.ctx, ast.Load) for name in first.values())


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
