"""What names are given beside a sampler by one call: `loader, sampler = get_loader(data)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def companions(facts: Facts, name: ast.expr) -> list[ast.Name] | None:
    """The reads of the names that are given together with one by a call; None: a call does not give it, or several do.

    A function that makes a loader may make one for each of its calls, so the reads of others are not these.
    """
    tree = facts.tree(name)
    names = [node for node in ast.walk(tree.function(name)) if isinstance(node, ast.Name)]
    if not isinstance(name, ast.Name):
        return None
    stores = [tree.statement(node) for node in names if node.id == name.id and isinstance(node.ctx, ast.Store)]
    if len(stores) != 1 or not isinstance(given := stores[0], ast.Assign) or not isinstance(given.value, ast.Call):
        return None
    target = given.targets[0]
    beside = {part.id for part in target.elts if isinstance(part, ast.Name)} if isinstance(target, ast.Tuple) else set()
    return [node for node in names if node.id in beside and isinstance(node.ctx, ast.Load)] if beside else None
