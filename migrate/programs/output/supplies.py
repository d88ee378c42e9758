"""Where the names that a branch reads have their values from: by arguments, by other names, out of lists.

if accelerator.is_main_process:
val_loader = DataLoader(...)
train(model, [loader, val_loader])

def train(model, loaders):
loader, val_loader = loaders
if accelerator.is_main_process:
evaluate(model, val_loader)       # what all enter needs what all have
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.units import Function
from migrate.programs.marker import is_main
from migrate.programs.values.sources import passed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

Place = tuple["Unit", str]  # a name, or an attribute, as it is written, and where


@dataclass(slots=True)
class Supplies:
    """What is behind the names that are read."""

    names: set[Place] = field(default_factory=set)  # these names, and those that give them their values
    choices: set[ast.IfExp] = field(default_factory=set)  # `val_loader if accelerator.is_main_process else None`


def supplies(facts: Facts, read: Iterable[Place]) -> Supplies:
    """The names that give these their values as they are; what is computed from others is another value."""
    found = Supplies()
    waiting = list(read)
    while waiting:
        place = waiting.pop()
        if place in found.names:
            continue
        found.names.add(place)
        for value, unit in _given(facts, *place):
            for name, choices in _parts(value, ()):
                waiting.append((unit, name))
                found.choices.update(choices)
    return found


def _given(facts: Facts, unit: Unit, name: str) -> Iterator[tuple[ast.expr, Unit]]:
    """What a name is given, with where that stands: by callers, if it is a parameter, and in its own unit."""
    if isinstance(unit, Function) and name in unit.parameter_names:
        for call in facts.callers(unit):
            if (argument := passed(call, unit, name)) is not None:
                yield argument, call.caller
    for node in facts.own(unit):
        if isinstance(node, ast.Assign) and any(
            ast.unparse(t) == name for each in node.targets for t in _parts_of(each)
        ):
            yield node.value, unit


def _parts_of(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, (ast.Tuple, ast.List)) else [target]


def _parts(node: ast.expr, choices: tuple[ast.IfExp, ...]) -> Iterator[tuple[str, tuple[ast.IfExp, ...]]]:
    """The names that an expression hands on, each with the choices of the main process that it stands in."""
    match node:
        case ast.Name() | ast.Attribute():
            yield ast.unparse(node), choices
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            for part in parts:
                yield from _parts(part, choices)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield from _parts(body, (*choices, node) if is_main(test) else choices)
            yield from _parts(orelse, choices)
        case ast.Starred(value=value) | ast.Subscript(value=value):
            yield from _parts(value, choices)
