"""What the accelerator is made with: the arguments of its constructor, from what the program did by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from migrate.programs.argument import HANDLERS, Argument
from migrate.programs.prepare.irregular import averages_after_backward
from migrate.programs.processes.replicas import without_device
from migrate.programs.program import Program
from migrate.programs.training.handed import of_distribution

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops

Decider = Callable[["Facts", "Loops", Program], Iterable[Argument]]

#: Each gives the arguments that its subject asks for.
DECIDERS: tuple[Decider, ...] = (of_distribution, averages_after_backward, without_device)


def arguments(facts: Facts, loops: Loops, program: Program) -> tuple[Argument, ...]:
    """The arguments that a program asks for, beside `cpu`; the first of each name counts."""
    found: dict[str, Argument] = {}
    for decide in DECIDERS:
        for argument in decide(facts, loops, program):
            key = argument.expression if argument.name == HANDLERS else argument.name
            found.setdefault(key, argument)
    return tuple(found.values())


def written(given: Iterable[Argument]) -> str:
    """The arguments as they are written between the parentheses of the constructor."""
    given = list(given)
    handlers = [argument.expression for argument in given if argument.name == HANDLERS]
    single = [f"{argument.name}={argument.expression}" for argument in given if argument.name != HANDLERS]
    return ", ".join([*single, *([f"{HANDLERS}=[{', '.join(handlers)}]"] if handlers else [])])
