"""What objects do not have where there is one process: the wrapper's `.module`, a rank that nobody was given."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.ways import certain
from migrate.analysis.known import distributed

if TYPE_CHECKING:
    from migrate.alone.world import World

_WRAPPERS = distributed.DISTRIBUTED_DATA_PARALLEL | distributed.DATA_PARALLEL

#: Calls that give objects attributes by keyword.
_SETTING = ("Namespace", "SimpleNamespace", "set_defaults", "dict", "update")


class Attributes:
    """The answers to `hasattr` and `isinstance` for one project."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._facts = world.facts
        self._asked: list[object] = []

    def is_missing(self, test: ast.expr) -> bool:
        """Whether a test asks for what there is on several processes only."""
        if not isinstance(test, ast.Call) or len(test.args) != 2:
            return False
        names = self._facts.called(test)
        if "builtins.hasattr" in names:
            name = test.args[1].value if isinstance(test.args[1], ast.Constant) else None
            return self._world.is_wrapped(test.args[0]) if name == "module" else self._is_unset(name)
        if "builtins.isinstance" not in names:
            return False
        kinds = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]
        return all(self._facts.names(kind) & _WRAPPERS for kind in kinds) and self._world.is_wrapped(test.args[0])

    def _is_unset(self, name: object) -> bool:
        """`hasattr(args, "rank")`: a number of the place, which only branches that go away set."""
        if name in self._asked or name in self._others:
            return False
        given = [(target, value) for target, value in self._world.assigned_attributes() if target.attr == name]
        if not any(value is not None and self._world.is_given_by_launcher(value) for _, value in given):
            return False
        self._asked.append(name)
        found = all(self._is_lost(target) for target, _ in given)
        self._asked.pop()
        return found

    @cached_property
    def _others(self) -> frozenset[object]:
        """The names that options, and what is made with keywords, have."""
        found: set[object] = set()
        for module in self._facts.modules:
            for node in self._facts.tree(module.tree).nodes:
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("-"):
                    found.add(node.value.lstrip("-").replace("-", "_"))
                elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _SETTING:
                    found |= {keyword.arg for keyword in node.keywords}
        return frozenset(found)

    def _is_lost(self, node: ast.AST) -> bool:
        """Whether code is in a branch that goes away."""
        for above in self._facts.tree(node).up(node):
            kept = certain(self._world, above) if isinstance(above, ast.If) else None
            if kept is not None and not any(node is inner for statement in kept for inner in ast.walk(statement)):
                return True
        return False
