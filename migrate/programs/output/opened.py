"""A DataParallel that is never run: it is put around a model to read weights saved from one, and opened again.

    wrapped = nn.DataParallel(backbone)
    wrapped.load_state_dict(torch.load(path))
    self.body = wrapped.module.body

It may stay where it is: only what runs in it is dealt out over all GPUs.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.units import Function

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts

#: What is asked of a wrapper and gives nothing that would run in it.
_OPENING = frozenset({"module", "load_state_dict", "state_dict"})


def is_only_opened(facts: Facts, call: ast.Call) -> bool:
    """Whether what `DataParallel(model)` gives is only filled, read or opened: of all that a name in a function has."""
    if len(call.args) != 1 or call.keywords:
        return False  # with `device_ids` it moves the model
    above = facts.tree(call).parents[call]
    if _is_opening(above):
        return True
    unit = facts.unit(call)
    if not (isinstance(above, ast.Assign) and isinstance(unit, Function)):
        return False
    names = {target.id for target in above.targets if isinstance(target, ast.Name)}
    return len(names) == len(above.targets) and all(_is_opening(use) for use in _uses(facts, unit, names, call))


def _uses(facts: Facts, unit: Function, names: set[str], call: ast.Call) -> list[ast.AST]:
    """What stands around each use of some names in a function, and what lets others use them."""
    parents = facts.tree(call).parents
    found: list[ast.AST] = []
    for node in ast.walk(unit.node):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names:
            found += [parents[node]] if node is not call.args[0] else []
        elif isinstance(node, (ast.Global, ast.Nonlocal)) and names & {*node.names}:
            found.append(node)
    return found


def _is_opening(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _OPENING
