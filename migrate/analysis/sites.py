"""The places that call a function, and what each passes."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.units import Call, Function


class Way(str, Enum):
    """How an argument is passed."""

    POSITION = "by position"
    KEYWORD = "by keyword"
    STAR = "by * or **"


@dataclass(frozen=True, slots=True)
class Passed:
    """One argument of a call, and the parameter it fills; no parameter for one that is passed by a star."""

    node: ast.expr
    way: Way
    parameter: str | None


@dataclass(frozen=True, slots=True)
class Site:
    """One place that calls the function."""

    call: Call
    passed: tuple[Passed, ...]
    binds: bool = False  # `partial(step, model)`: what it passes is kept for all calls of what it gives

    @property
    def is_starred(self) -> bool:
        """Whether it does not say all that it passes."""
        return any(passed.way is Way.STAR for passed in self.passed)

    def leaves_room(self, unit: Function) -> bool:
        """Whether another argument finds its place: what `**` passes has names, and more would be one too many."""
        return not any(isinstance(each, ast.Starred) for each in self.call.node.args) and unit.others is None


def site_of(call: Call, unit: Function) -> Site:
    """What a call of a function passes."""
    return Site(call, _passed(call, unit, call.args))


def binding_site(call: Call, unit: Function) -> Site:
    """What `partial` is given for a function, whose name stands before all else."""
    return Site(call, _passed(call, unit, call.args[1:]), binds=True)


def _passed(call: Call, unit: Function, given: Sequence[ast.expr | None]) -> tuple[Passed, ...]:
    """What a call passes by position, and by keyword."""
    positional = unit.positional[int(call.bound) :]
    passed: list[Passed] = []
    for position, argument in enumerate(given):
        if argument is None:
            continue
        if isinstance(argument, ast.Starred):
            passed.append(Passed(argument.value, Way.STAR, None))
        else:
            name = positional[position].arg if position < len(positional) else None
            passed.append(Passed(argument, Way.POSITION, name))
    for keyword in call.keywords:
        way = Way.STAR if keyword.arg is None else Way.KEYWORD
        passed.append(Passed(keyword.value, way, keyword.arg))
    return tuple(passed)
