"""What a program sums up over all processes by itself, so that what it shows of that is no process's own.

`mean = torch.tensor(running / steps)`, and below it `mean = accelerator.reduce(mean)`: only the sum is shown.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import reads, walk
from migrate.programs.marker import asks_accelerator

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function


def goes_to_all(facts: Facts, node: ast.expr) -> bool:
    """Whether all that is made of an expression where it stands is summed up before anything else reads it."""
    tree = facts.tree(node)
    statement = tree.statement(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    if any(isinstance(above, ast.Call) and _sums_up(facts, above) for above in tree.up(node)):
        return True
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        return False
    block = tree.block(statement)
    later = block[block.index(statement) + 1 :]
    first = next((each for each in later if target.id in reads(each)), None)
    return isinstance(first, (ast.Assign, ast.Expr)) and (
        _gives_sum(first, target.id)
        or any(isinstance(n, ast.Call) and _is_given(n, target.id) and _sums_up(facts, n) for n in walk(first))
    )


def _sums_up(facts: Facts, call: ast.Call) -> bool:
    """Whether a call enters a function of the project that sums up what it is given, and nothing else."""
    targets = facts.targets(call)
    return bool(targets) and all(map(_is_summing, targets))


def _is_summing(unit: Function) -> bool:
    statements = [node for node in walk(unit.node) if isinstance(node, ast.stmt)]
    return any(_gives_sum(each, name) for each in statements for name in _changed(each))


def _changed(statement: ast.stmt) -> list[str]:
    """The name that a statement gives a value, or whose tensor it changes."""
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    method = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    return [method.value.id] if isinstance(method, ast.Attribute) and isinstance(method.value, ast.Name) else []


def _gives_sum(statement: ast.stmt, name: str) -> bool:
    """`name = accelerator.reduce(name)`, `name.copy_(accelerator.reduce(name))`."""
    if name not in _changed(statement):
        return False
    calls = [node for node in walk(statement) if isinstance(node, ast.Call) and asks_accelerator(node)]
    summed = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "reduce"]
    return any(_is_given(call, name) for call in summed)


def _is_given(call: ast.Call, name: str) -> bool:
    return any(isinstance(given, ast.Name) and given.id == name for given in call.args)
