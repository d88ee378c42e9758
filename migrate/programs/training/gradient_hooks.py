"""Hooks that parameters call with their gradient: `p.register_hook(lambda grad: grad.clamp(-1, 1))`.

They are called in backward, before the gradients of the processes are averaged. What only multiplies gives the same
for the mean as the mean of what it gives: a mask, a factor.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import argument_at, walk
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.program import Program


def bending_hooks(facts: Facts, program: Program) -> Iterator[ast.Call]:
    """The calls that register a hook of a trained model's parameter which does more than multiply its gradient."""
    for use in facts.method_calls("register_hook"):
        if _owners(facts, use.node) & program.model_origins:
            hook = argument_at(use.node, 0, "hook")
            if hook is not None and not _is_linear(facts, hook):
                yield use.node


def _owners(facts: Facts, call: ast.Call) -> set[ast.AST]:
    """The models of whose parameter a method is called: `p` of `model.parameters()`, `model.weight`."""
    found = origins(facts.receiver(call), Role.PARAMETERS)
    if not found and isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Attribute):
        found = origins(facts.values(call.func.value.value), Role.MODEL)
    return found


def _is_linear(facts: Facts, hook: ast.expr) -> bool:
    units = [value.unit for value in facts.values(hook) if isinstance(value.unit, Function)]
    if isinstance(hook, ast.Lambda):
        names = [each.arg for each in hook.args.args]
        return bool(names) and _multiplies(hook.body, names[0])
    return bool(units) and all(_gives_linear(facts, unit) for unit in units)


def _gives_linear(facts: Facts, unit: Function) -> bool:
    given = [node.value for node in facts.own(unit).of(ast.Return) if node.value is not None]
    names = [name for name in unit.parameter_names if unit.itself is None or name != unit.itself.arg]
    return bool(names) and bool(given) and all(_multiplies(value, names[0]) for value in given)


def _multiplies(node: ast.expr, grad: str) -> bool:
    """`grad * mask`, `-grad / 2`: a product of the gradient and of what does not go by it."""
    match node:
        case ast.Name(id=name):
            return name == grad
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _multiplies(operand, grad)
        case ast.BinOp(op=ast.Mult(), left=left, right=right):
            return (_multiplies(left, grad) and _is_free(right, grad)) or (
                _multiplies(right, grad) and _is_free(left, grad)
            )
        case ast.BinOp(op=ast.Div(), left=left, right=right):
            return _multiplies(left, grad) and _is_free(right, grad)
    return False


def _is_free(node: ast.expr, grad: str) -> bool:
    return all(inner.id != grad for inner in walk(node).of(ast.Name))
