"""Nodes of a syntax tree in an order, which find those of one kind again without looking at all of them."""

from __future__ import annotations

import ast
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)

#: `ast` shares the nodes of contexts and operators; they have no place.
_SHARED = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
#: Fields in which no other node ever is.
_PLAIN = frozenset({"ctx", "op", "ops", "id", "attr", "arg", "kind", "type_comment", "level", "module", "asname"})


#: The others, of each kind of node.
_FIELDS = {
    kind: tuple(name for name in kind._fields if name not in _PLAIN)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}
_PLACED = frozenset(kind for kind in _FIELDS if not issubclass(kind, _SHARED))
#: Most nodes: nothing is below them.
LEAVES = frozenset(kind for kind in _PLACED if not _FIELDS[kind]) | {ast.Constant}


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below a node that have a place, in source order. (`ast.iter_child_nodes` takes twice as long.)"""
    found: list[ast.AST] = []
    for name in _FIELDS[node.__class__]:
        value = getattr(node, name, None)
        if value.__class__ is list:
            found += [child for child in value if child.__class__ in _PLACED]
        elif value.__class__ in _PLACED:
            found.append(value)
    return found


class Nodes(tuple[ast.AST, ...]):  # noqa: SLOT001 - what it has found
    """Nodes that are kept with the node that they belong to. They are not a copy's, which may become something else."""

    def __deepcopy__(self, memo: object) -> Nodes:
        return Nodes()

    def of(self, kind: type[_Node]) -> tuple[_Node, ...]:
        """Those of a kind, in the same order. Decisions ask for the same few kinds over and over."""
        kinds: dict[type[ast.AST], tuple[_Node, ...]] = vars(self).setdefault("kinds", {})
        if kind not in kinds:
            kinds[kind] = tuple([node for node in self if isinstance(node, kind)])  # a list takes half the time
        return kinds[kind]
