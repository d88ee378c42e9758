"""What the accelerator is made with: the arguments of its constructor, from what the program did by hand."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from migrate.programs.argument import HANDLERS, Argument
from migrate.programs.device.cpu_alone import on_cpu_alone
from migrate.programs.device.unspoken import without_device
from migrate.programs.prepare.irregular import averages_after_backward
from migrate.programs.program import Program
from migrate.programs.training.handed import of_distribution

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops

Decider = Callable[["Facts", "Loops", Program], Iterable[Argument]]

#: Each gives the arguments that its subject asks for.
DECIDERS: tuple[Decider, ...] = (of_distribution, averages_after_backward, without_device, on_cpu_alone)


def arguments(facts: Facts, loops: Loops, program: Program) -> tuple[Argument, ...]:
    """The arguments that a program asks for, beside `cpu`; the first of each name counts.

    Of each kind there is one handler, as the constructor wants it: what the program's own wrapper was made with, and
    what its gradients need.
    """
    found: dict[str, Argument] = {}
    for decide in DECIDERS:
        for argument in decide(facts, loops, program):
            if argument.name != HANDLERS:
                found.setdefault(argument.name, argument)
                continue
            kind = argument.expression.partition("(")[0]
            found[kind] = _together(found[kind], argument) if kind in found else argument
    return tuple(found.values())


def _together(one: Argument, other: Argument) -> Argument:
    """One handler for two of a kind; where both name a field, the second counts."""
    calls = [ast.parse(each.expression, mode="eval").body for each in (one, other)]
    fields = {
        keyword.arg: ast.unparse(keyword.value)
        for call in calls
        if isinstance(call, ast.Call)
        for keyword in call.keywords
    }
    kind = one.expression.partition("(")[0]
    expression = f"{kind}({', '.join(f'{name}={value}' for name, value in fields.items())})"
    return Argument(HANDLERS, expression, one.needs | other.needs, tuple(dict.fromkeys(one.imports + other.imports)))


def written(given: Iterable[Argument]) -> str:
    """The arguments as they are written between the parentheses of the constructor."""
    given = list(given)
    handlers = [argument.expression for argument in given if argument.name == HANDLERS]
    single = [f"{argument.name}={argument.expression}" for argument in given if argument.name != HANDLERS]
    return ", ".join([*single, *([f"{HANDLERS}=[{', '.join(handlers)}]"] if handlers else [])])
