"""Statements that give a name the object which it has: `model = model.to("cuda:0")`, `model = restore(model, path)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.device.devices import is_move, is_to_cpu
from migrate.programs.values.handing_back import gives_back, is_handed_back
from migrate.programs.values.sources import before_modes

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def is_the_same(facts: Facts, statement: ast.stmt, target: str) -> bool:
    """Whether a statement gives a name what it holds already, where it may be, or set otherwise inside."""
    if is_handed_back(facts, statement, target):
        return True
    if not isinstance(statement, ast.Assign) or [ast.unparse(each) for each in statement.targets] != [target]:
        return False
    return _is_still(facts, statement.value, target)


def _is_still(facts: Facts, node: ast.expr, target: str) -> bool:
    """Whether an expression is the object under a name: moved, or given back by a function, if by nothing else."""
    node = before_modes(node)
    if not isinstance(node, ast.Call):
        return ast.unparse(node) == target
    if isinstance(node.func, ast.Attribute) and (is_move(facts, node) or is_to_cpu(facts, node)):
        return _is_still(facts, node.func.value, target)
    return gives_back(facts, node, target)
