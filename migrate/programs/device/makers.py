"""Expressions and functions that make a device, as against handing one on."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_docstring
from migrate.analysis.units import Function
from migrate.programs.device.branches import sets_device
from migrate.programs.values.users import is_users, names_device

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def is_choice(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression makes a device, as against handing one on; a part of it may be what a user names."""
    if not names_device(facts, facts.values(node)):
        return False
    if (each := parts(node)) is not None:
        return all(is_choice(facts, part) or is_users(facts, part) for part in each)
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Call):
        if targets := facts.targets(node):
            return all(map(facts.once(_Makers).__getitem__, targets))
        return bool(facts.called(node)) or is_put_together(node)
    return is_put_together(node)


def is_put_together(node: ast.expr) -> bool:
    """A text into which a number is put: `f"cuda:{gpu}"`, `"cuda:%d" % gpu`, `"cuda:{}".format(gpu)`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant)
    return isinstance(node, (ast.JoinedStr, ast.BinOp))


def parts(node: ast.expr) -> list[ast.expr] | None:
    """What `a if test else b` or `a or b` may be; None: it is neither."""
    if isinstance(node, ast.IfExp):
        return [node.body, node.orelse]
    return node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) else None


class _Makers(dict[Function, bool]):
    """Whether functions make the device that they give, are handed none and do nothing else, such as printing."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, function: Function) -> bool:
        self[function] = False  # as far as it calls itself
        self[function] = self._makes(function)
        return self[function]

    def _makes(self, function: Function) -> bool:
        facts = self._facts
        handed = any(facts.is_device(function.parameters.get(name, frozenset())) for name in function.parameter_names)
        nodes = list(ast.walk(function.node))
        said = (node for node in nodes if isinstance(node, ast.Expr) and not is_docstring(node))
        speaks = not all(sets_device(facts, node) for node in said)
        made = (node for node in nodes if isinstance(node, (ast.Call, ast.Constant)) and is_choice(facts, node))
        return not handed and not speaks and any(not isinstance(n, ast.Call) or not facts.targets(n) for n in made)
