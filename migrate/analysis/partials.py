"""Functions of the project that `functools.partial` binds: `step = partial(train_step, model, optimizer)`.

Whoever calls `step`, what is bound by a keyword reaches the function. So another argument finds its place where the
function is bound, if the calls that were seen pass no more by position than what has no default.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.units import Call, Function

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts

PARTIAL = "functools.partial"


class Partials:
    """Where functions are bound."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def of(self, unit: Function) -> list[Call]:
        """The calls of `partial` that bind a function, each as one of its calls."""
        return self._of.get(unit, [])

    @cached_property
    def _of(self) -> dict[Function, list[Call]]:
        found: dict[Function, list[Call]] = {}
        binding = (use for use in self._facts.calls_anywhere if PARTIAL in self._facts.called(use.node))
        for use in binding:
            for value in self._facts.values(use.node.args[0]) if use.node.args else ():
                if isinstance(value.unit, Function) and value.role in (Role.FUNCTION, Role.METHOD):
                    is_bound = value.role is Role.METHOD
                    found.setdefault(value.unit, []).append(Call(use.node, use.unit, is_bound))
        return found

    @cached_property
    def functions(self) -> frozenset[ast.AST]:
        """Where a function is read to be bound."""
        return frozenset(call.node.args[0] for calls in self._of.values() for call in calls)

    def leaves_room(self, unit: Function) -> bool:
        """Whether the calls of what is bound leave one more parameter to a keyword."""
        required = len(unit.positional) - len(unit.node.args.defaults)
        return unit.rest is None and all(
            not any(isinstance(argument, ast.Starred) for argument in call.args)
            and len(call.args) + int(call.bound) <= required
            for call in unit.calls.values()
            if is_of_partial(call)
        )


def is_of_partial(call: Call) -> bool:
    """Whether a call enters a function by what `partial` has made of it."""
    return call.handed is not None and call.handed.by == PARTIAL
