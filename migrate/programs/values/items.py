"""What the items of dicts were given: `settings["steps"] = len(loader)`, read as `settings["steps"]` elsewhere."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import is_stored, targets_of, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from migrate.analysis.facts import Facts

    Stored = tuple[ast.Subscript, ast.expr]


def items_given(facts: Facts, node: ast.Subscript) -> Iterator[ast.expr]:
    """The expressions that an item was given where it may be the same one: its key is written out.

    Dicts that come from a file have no place where they are made: any two of these may be one.
    """
    if is_stored(node) or not isinstance(node.slice, ast.Constant):
        return
    mine = _owners(facts, node)
    for target, value in facts.once(_stored).get(node.slice.value, ()):
        theirs = _owners(facts, target)
        if not mine or not theirs or not mine.isdisjoint(theirs):
            yield value


def _owners(facts: Facts, node: ast.Subscript) -> set[ast.AST]:
    return origins(facts.values(node.value), *Role)


def _stored(facts: Facts) -> Mapping[object, Sequence[Stored]]:
    """The statements that set an item, by its key."""
    found: dict[object, list[Stored]] = {}
    for module in facts.modules:
        for node in walk(module.tree):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                for target in targets_of(node):
                    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                        found.setdefault(target.slice.value, []).append((target, node.value))
    return found
