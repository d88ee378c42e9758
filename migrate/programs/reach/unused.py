"""Functions and classes that nothing names which runs: helpers that were copied together with others.

Names are compared, wherever they stand, so what is told unused is. A function that leads to a training is an entry that
something else may call, and what is decorated may be registered: those are used.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import DEFINITIONS, walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from migrate.analysis.facts import Facts
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Unused:
    """The definitions at the top of a project's files that nothing uses."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        named: dict[_Definition, frozenset[str]] = {}
        used: set[str] = set()
        for statement in (each for module in facts.modules for each in facts.tree_of(module).root.body):
            if isinstance(statement, DEFINITIONS):
                named[statement] = self._names(statement) - {statement.name}
            else:
                used |= self._names(statement)
        used |= {node.name for node in named if node.decorator_list} | _leading(named)
        while more := {name for node, names in named.items() if node.name in used for name in names} - used:
            used |= more
        self.nodes = frozenset(node for node in named if node.name not in used)

    def holds(self, node: ast.AST) -> bool:
        """Whether a node stands in one of these, or is one."""
        return bool(self.nodes) and not self.nodes.isdisjoint((node, *self._facts.tree(node).up(node)))

    def _names(self, statement: ast.stmt) -> frozenset[str]:
        """The names, attributes and texts in a statement, other than a library's; an import alone uses nothing."""
        found = set[str]()
        inside = walk(statement)
        found.update(node.id for node in inside.of(ast.Name))
        found.update(node.attr for node in inside.of(ast.Attribute) if not self._facts.names(node))
        found.update(node.value for node in inside.of(ast.Constant) if isinstance(node.value, str))
        found.update(alias.name for alias in inside.of(ast.alias) if alias.asname is not None)
        return frozenset(found)


def _leading(named: Mapping[_Definition, frozenset[str]]) -> set[str]:
    """What leads to a training."""
    found = {"backward"}
    while more := {node.name for node, names in named.items() if names & found} - found:
        found |= more
    return found
