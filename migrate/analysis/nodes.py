"""Nodes of a syntax tree in an order, which find those of one kind again without looking at all of them."""

from __future__ import annotations

import ast
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)


class Nodes(tuple[ast.AST, ...]):  # noqa: SLOT001 - what it has found
    """Nodes that are kept with the node that they belong to. They are not a copy's, which may become something else."""

    def __deepcopy__(self, memo: object) -> Nodes:
        return Nodes()

    def of(self, kind: type[_Node]) -> tuple[_Node, ...]:
        """Those of a kind, in the same order. Decisions ask for the same few kinds over and over."""
        kinds: dict[type[ast.AST], tuple[_Node, ...]] = vars(self).setdefault("kinds", {})
        if kind not in kinds:
            kinds[kind] = tuple(node for node in self if isinstance(node, kind))
        return kinds[kind]
