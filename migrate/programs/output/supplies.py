"""Where the names that a branch reads have their values from: by arguments, by other names, out of lists.

    if accelerator.is_main_process:
        val_loader = DataLoader(...)
    train(model, [loader, val_loader])

    def train(model, loaders):
        loader, val_loader = loaders
        if accelerator.is_main_process:
            evaluate(model, val_loader)       # what all enter needs what all have

So it is with the attributes of an object, wherever its methods set and read them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.units import Class, Function
from migrate.programs.marker import is_main
from migrate.programs.values.sources import passed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

#: A name, or an attribute, as it is written, and where; of an object's own attribute the class, and ".attribute".
Place = tuple["Unit | Class", str]


@dataclass(slots=True)
class Supplies:
    """What is behind the names that are read."""

    places: set[Place] = field(default_factory=set)  # these names, and those that give them their values
    choices: set[ast.IfExp] = field(default_factory=set)  # `val_loader if accelerator.is_main_process else None`


def place(unit: Unit, name: str) -> Place:
    """The place of a name that a unit reads or sets; of `self.loader` it is one for all methods of the object."""
    if isinstance(unit, Function) and unit.itself is not None and isinstance(unit.owner, Class):
        own, dot, attribute = name.partition(".")
        if dot and own == unit.itself.arg:
            return unit.owner.mro()[-1], f".{attribute}"
    return unit, name


def supplies(facts: Facts, read: Iterable[Place]) -> Supplies:
    """The names that give these their values as they are; what is computed from others is another value."""
    found, assigned = Supplies(), facts.once(_Assigned)
    waiting = list(read)
    while waiting:
        at = waiting.pop()
        if at in found.places:
            continue
        found.places.add(at)
        for value, unit in (*_handed(facts, *at), *assigned.of(at)):
            for name, choices in _parts(value, ()):
                waiting.append(place(unit, name))
                found.choices.update(choices)
    return found


def handed_reads(facts: Facts, unit: Function) -> Iterator[Place]:
    """What a function reads of what it is handed, and of its object."""
    for node in facts.own(unit):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in unit.parameter_names:
            yield unit, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            at = place(unit, ast.unparse(node))
            if at[0] is not unit:
                yield at


class _Assigned:
    """What each place is given by assignments, with where these stand."""

    def __init__(self, facts: Facts) -> None:
        self._known: dict[Place, list[tuple[ast.expr, Unit]]] = {}
        for unit in facts.units:
            for node in facts.own(unit):
                if isinstance(node, ast.Assign):
                    for target in (part for each in node.targets for part in _targets(each)):
                        if isinstance(target, (ast.Name, ast.Attribute)):
                            self._known.setdefault(place(unit, ast.unparse(target)), []).append((node.value, unit))

    def of(self, at: Place) -> list[tuple[ast.expr, Unit]]:
        return self._known.get(at, [])


def _handed(facts: Facts, unit: Unit | Class, name: str) -> Iterator[tuple[ast.expr, Unit]]:
    """What the callers of a function give its parameter."""
    if isinstance(unit, Function) and name in unit.parameter_names:
        for call in facts.callers(unit):
            if (argument := passed(call, unit, name)) is not None:
                yield argument, call.caller


def _targets(target: ast.expr) -> list[ast.expr]:
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
