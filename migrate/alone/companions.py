"""What stands beside a sampler: what one call gives, `loader, sampler = get_loader(data)`, or has the same key."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import keyword_of, same, walk

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree


def companions(facts: Facts, name: ast.expr) -> list[ast.Name] | None:
    """The reads of the names that are given together with one by a call; None: a call does not give it, or several do.

    A function that makes a loader may make one for each of its calls, so the reads of others are not these.
    """
    if not isinstance(name, ast.Name):
        return None
    tree = facts.tree(name)
    names = walk(tree.function(name)).of(ast.Name)
    stores = [tree.statement(node) for node in names if node.id == name.id and isinstance(node.ctx, ast.Store)]
    if len(stores) != 1 or not isinstance(given := stores[0], ast.Assign) or not isinstance(given.value, ast.Call):
        return None
    target = given.targets[0]
    beside = {part.id for part in target.elts if isinstance(part, ast.Name)} if isinstance(target, ast.Tuple) else set()
    return [node for node in names if node.id in beside and isinstance(node.ctx, ast.Load)] if beside else None


def made_by(value: ast.expr) -> list[ast.expr]:
    """What an expression holds: a sampler, or a dictionary of some."""
    if isinstance(value, ast.DictComp):
        return [value.value]
    return value.values if isinstance(value, ast.Dict) and value.values else [value]


def is_under_its_key(tree: Tree, loader: ast.Call) -> bool:
    """`{x: DataLoader(data[x], sampler=samplers[x]) for x in names}`, and the same for one key."""
    given, above = keyword_of(loader, "sampler"), tree.parents[loader]
    keys: list[ast.expr | None] = []
    if isinstance(above, ast.DictComp):
        keys = [above.key]
    elif isinstance(above, ast.Dict):
        keys = [key for key, value in zip(above.keys, above.values, strict=True) if value is loader]
    elif isinstance(above, ast.Assign):
        keys = [target.slice for target in above.targets if isinstance(target, ast.Subscript)]
    taken = given.value if given is not None else None
    return isinstance(taken, ast.Subscript) and any(key is not None and same(key, taken.slice) for key in keys)


def is_given_above(function: ast.AST, name: ast.expr, place: ast.expr) -> bool:
    """Whether a name has its value at a place: a function that gives it one does so above that."""
    text = ast.unparse(name)
    names = (node for node in ast.walk(function) if isinstance(node, (ast.Name, ast.Attribute)))
    lines = [node.lineno for node in names if isinstance(node.ctx, ast.Store) and ast.unparse(node) == text]
    return not lines or min(lines) < place.lineno
