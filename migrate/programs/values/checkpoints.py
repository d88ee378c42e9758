"""What a checkpoint holds: the items of the dictionaries and lists that `torch.save` is given."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.syntax import argument_at, walk
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

_DEEPEST = 4


def saved(facts: Facts) -> Iterator[ast.expr]:
    """Each item, once: `net` of `{"net": net}`, of `state["net"] = net`, of `dict(net=net)`, also where others save."""
    sources, seen = facts.once(Sources), set[ast.expr]()
    for use in facts.calls_anywhere:
        if output.SAVE not in facts.called(use.node):
            continue
        given = argument_at(use.node, 0, "obj")
        waiting = [(given, _DEEPEST)] if given is not None else []
        while waiting:
            node, depth = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            items = [*_items(node), *_stored(facts, node)]
            yield from items
            waiting += [(item, depth - 1) for item in items if depth]
            if isinstance(node, (ast.Name, ast.Attribute)) and depth:
                waiting += [(other, depth - 1) for other in sources.given(node).expressions]


def _items(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, (ast.List, ast.Tuple)):
        return node.elts
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "dict":
        return [keyword.value for keyword in node.keywords]
    return []


def _stored(facts: Facts, node: ast.expr) -> list[ast.expr]:
    """What is put into a dictionary by its name."""
    if not isinstance(node, ast.Name):
        return []
    return [
        inner.value
        for inner in walk(facts.tree(node).function(node)).of(ast.Assign)
        for target in inner.targets
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and target.value.id == node.id
    ]
