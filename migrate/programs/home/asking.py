"""Models and losses that ask the accelerator for something: they are handed it when they are made, and keep it.

    self.center = accelerator.reduce(center)      in a method: self.accelerator.reduce(center)

What a model holds is copied and pickled with it, which an accelerator cannot be.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import is_docstring
from migrate.analysis.units import Class, Function
from migrate.programs.marker import ACCELERATOR, marks
from migrate.programs.reach.callees import reached
from migrate.programs.reach.outsiders import is_inside_model

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module, Unit


@dataclass(frozen=True, slots=True)
class Asking:
    """What in models, or called by models, asks the accelerator."""

    modules: tuple[Module, ...] = ()  # where anything does
    classes: frozenset[Class] = frozenset()  # of which a method needs it
    functions: frozenset[Function] = frozenset()  # that methods of models call, and constructors of models


_COPYING = frozenset(
    """copy.copy copy.deepcopy torch.save pickle.dump pickle.dumps torch.jit.script torch.jit.trace
    torch.optim.swa_utils.AveragedModel""".split()
)


def asking(facts: Facts) -> Asking:
    """The models of a project that ask, with the functions that they call for it."""
    return facts.once(_found)


def _found(facts: Facts) -> Asking:
    modules = tuple(m for m in facts.editable if ACCELERATOR.encode() in m.file.content)
    classes: set[Class] = set()
    functions: set[Function] = set()
    for unit in {facts.unit(mark) for module in modules for mark in marks(module.tree)}:
        above = _above(facts, unit, set())
        classes |= {owner for method in above if method.name != "__init__" and (owner := method.owner) is not None}
        if above and isinstance(unit, Function) and (unit not in above or unit.name == "__init__"):
            functions.add(unit)
    return Asking(modules, frozenset(classes), frozenset(functions))


def _above(facts: Facts, unit: Unit, seen: set[Unit]) -> set[Function]:
    """The methods of models that a unit is, or that call it."""
    if not isinstance(unit, Function) or unit in seen:
        return set()
    seen.add(unit)
    if is_inside_model(facts, unit):
        return {unit}
    return {m for call in facts.callers(unit) for m in _above(facts, call.caller, seen)}


def asked_by(facts: Facts, units: Collection[Unit]) -> set[Unit]:
    """The units that ask the accelerator in the models that some units make."""
    found = asking(facts)
    if not found.classes and not found.functions:
        return set()
    inside = reached(facts, units)
    made = {cls for cls in found.classes if _constructor(cls) in inside or _constructor(cls) is None}
    methods = {unit for unit in facts.functions if unit.owner in made}
    return methods | (reached(facts, {*inside, *methods}) & found.functions)


def makers(facts: Facts) -> set[Unit | None]:
    """The constructors of the models that ask."""
    return {_constructor(cls) for cls in asking(facts).classes}


def _constructor(cls: Class) -> Function | None:
    values = cls.lookup("__init__")
    return next((value.unit for value in values if isinstance(value.unit, Function)), None)


def keeps(facts: Facts, unit: Function) -> ast.stmt | None:
    """The statement of a model's `__init__` below which it can keep the accelerator; None if it has no need to."""
    if unit.name != "__init__" or unit.owner not in asking(facts).classes:
        return None
    body = unit.body[1:] if is_docstring(unit.body[0]) and len(unit.body) > 1 else unit.body
    return next((s for s in body if isinstance(s, ast.Expr) and "__init__(" in ast.unparse(s)), body[0])


def constructor(facts: Facts, unit: Function) -> Function | str | None:
    """The `__init__` through which a model's method gets the accelerator, or why it cannot; None: it is no such method.

    It goes on after "forward() needs the accelerator, and ...".
    """
    cls = unit.owner
    if cls is None or cls not in asking(facts).classes or unit.name == "__init__":
        return None
    own = {value.unit for value in cls.names.get("__init__", ()) if isinstance(value.unit, Function)}
    if len(own) != 1 or not unit.has_object:
        return f"{cls.name} has no __init__ of its own that could keep it"
    if next(_copies(facts, cls), None) is not None:
        return f"{cls.name} is copied, or saved as a whole, with what it keeps"
    return own.pop()


def _copies(facts: Facts, cls: Class) -> Iterator[ast.Call]:
    """The calls that copy or write an object of a class, or one that it is a part of."""
    objects = {value.origin for value in cls.instances}
    for use in facts.calls_to(_COPYING):
        for given in use.node.args[:1]:
            values = facts.values(given)
            wholes = origins(values, Role.MODEL) | facts.inside(values, Role.MODEL)
            if (wholes | facts.parts(wholes)) & objects:
                yield use.node
