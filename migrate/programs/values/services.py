"""Services that a program asks for what it told them (`wandb.config`), or that code of files which were not named tells
something (`wandb.log`): every process needs a run of its own.

Only the main process' run goes to the service; the others' is switched off, and answers all the same.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.analysis.facts import Facts

_ANSWERS = frozenset(name.rpartition(".")[2] for name in output.ASKED)


def begun_for(facts: Facts, names: Collection[str]) -> frozenset[ast.AST]:
    """What begins the runs that some names ask: `wandb.init()` for `wandb.config.device`, which nobody has before."""
    asked = {each.rpartition(".")[0] for name in names for each in _wholes(name) if each.rpartition(".")[2] in _ANSWERS}
    if not asked:
        return frozenset()
    calls = (call for module in facts.modules for call in facts.tree_of(module).nodes.of(ast.Call))
    starts = (call for call in calls if isinstance(call.func, ast.Attribute) and facts.called(call) & output.SWITCHED)
    return frozenset(call for call in starts if ast.unparse(call.func).rpartition(".")[0] in asked)


def _wholes(name: str) -> list[str]:
    """`a.b.c` and what it is asked of: `a.b`, `a`."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


class Services:
    """Runs of services."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def starts(self, call: ast.Call) -> bool:
        """Whether a call starts a run that the program asks for something, or that code which stays writes to."""
        is_asked = self._is_asked or self._is_told_elsewhere or call in self._asked_runs
        return is_asked and bool(self._facts.called(call) & output.SWITCHED)

    @cached_property
    def _is_told_elsewhere(self) -> bool:
        """Whether files that were not named write to a run, as every process does that comes to them."""
        services = tuple(f"{name.partition('.')[0]}." for name in output.SWITCHED)
        nodes = (n for m in self._facts.modules if not m.file.named for n in self._facts.tree_of(m).nodes)
        called = (name for n in nodes if isinstance(n, ast.Call) for name in self._facts.called(n))
        return any(name.startswith(services) and name not in output.SWITCHED for name in called)

    @cached_property
    def _is_asked(self) -> bool:
        """Whether the run is read through the library's module, other than to write."""
        return any(self._facts.names(node) & output.ASKED for node in self._read)

    @cached_property
    def _asked_runs(self) -> set[ast.AST]:
        """Where runs were made of which attributes are read: `run.id`, `run.config.lr`."""
        return {
            origin
            for node in self._read
            if isinstance(node, ast.Attribute)
            for origin in origins(self._facts.values(node.value), Role.WRITER)
        }

    @cached_property
    def _read(self) -> list[ast.Attribute | ast.Name]:
        """The names and attributes that are no function of a statement that only calls it."""
        found: list[ast.Attribute | ast.Name] = []
        for module in self._facts.modules:
            tree = self._facts.tree_of(module)
            called: set[int] = set()
            for node in tree.nodes:
                if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                    called |= {id(inner) for inner in walk(node.value.func)}
                elif isinstance(node, (ast.Attribute, ast.Name)) and id(node) not in called:
                    found.append(node)
        return found
