"""The units of a program, and those of its functions that code outside of it enters, too.

`get_network(args)` moves the model, in the training script and in the one that tests it. What is edited there for the
one would break the other, so such functions are left as they are, like those of a file that was not named.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.analysis.entrances import are_apart
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import arguments
from migrate.analysis.units import Class, Function, Module, Unit
from migrate.programs.reach.callees import entered
from migrate.programs.reach.callees import reached as reached_by
from migrate.programs.reach.self_training import steps
from migrate.programs.reach.tests import is_run_by_tests
from migrate.source.importers import importers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from migrate.analysis.facts import Facts
    from migrate.programs.program import Program


def run_by(facts: Facts, program: Program) -> set[Unit]:
    """The units that a program runs, with those that stay as they are: outsiders, and files that were not named."""
    assert program.home is not None
    assert program.start is not None
    return units_from(facts, program.start, program.home, also_left=True)


def units_of(facts: Facts, program: Program) -> set[Unit]:
    """The units of a program: its start, what it calls, what is defined there, the methods beside an `__init__`."""
    return _reached(facts, program) - program.outsiders.keys()


def importing(facts: Facts, unit: Unit) -> str | None:
    """A file that was not read and imports a function, by its path."""
    places = (place for function, place in _imported(facts, {unit}) if function is unit.original)
    return next((place.rpartition(":")[0] for place in places), None)


def units_inside(facts: Facts, program: Program) -> set[Unit]:
    """The units that the home reaches: when these run the objects are prepared, or about to be."""
    assert program.home is not None
    return units_from(facts, program.home)


def raw_units(facts: Facts, program: Program) -> set[Unit]:
    """The units that run without the home, too, where that is given its objects: with those that are not prepared."""
    assert program.home is not None
    if program.home is program.start or program.hands_up:
        return set()
    found = units_beside(facts, program.home, _reached(facts, program))
    return found | {loop.unit for loop in program.evaluation if are_apart(facts, loop.unit, program.home)}


def units_beside(facts: Facts, home: Unit, around: set[Unit]) -> set[Unit]:
    """Of the units `around` a home those that do not run inside of it alone."""
    inside = units_from(facts, home)
    found = around - inside
    waiting = [
        unit
        for unit in inside
        if isinstance(unit, Function)
        and unit is not home
        and any(call.caller not in inside for call in facts.callers(unit))
    ]
    while waiting:
        unit = waiting.pop()
        if unit not in found:
            found.add(unit)
            waiting += [u for u in _entered(facts, unit) if isinstance(u, Function) and u is not home]
    return found


def outsiders(facts: Facts, program: Program) -> Mapping[Function, str]:
    """The functions of a program that are entered from outside of it, each with the place of a call that does so."""
    reached = _reached(facts, program)
    unread = {**facts.signatures.called_in_unread, **dict(_imported(facts, reached))}
    found: dict[Function, str] = {}
    waiting = [
        (unit, place)
        for unit in sorted((u for u in reached if isinstance(u, Function)), key=_order)
        if (place := unread.get(unit) or _entered_at(facts, program, unit, reached))
    ]
    while waiting:
        unit, place = waiting.pop()
        if unit not in found and not _is_own(program, unit):
            found[unit] = place
            waiting += [(u, place) for u in _entered(facts, unit) if isinstance(u, Function) and u in reached]
    return found


def _order(unit: Function) -> tuple[str, int]:
    return unit.module.path, unit.node.lineno


def _reached(facts: Facts, program: Program) -> set[Unit]:
    assert program.home is not None
    assert program.start is not None
    return units_from(facts, program.start, program.home)


def units_from(facts: Facts, *starts: Unit, also_left: bool = False) -> set[Unit]:
    """The units that some units call, those that these call, and so on; with an `__init__` its class.

    Without those of files that were not named, unless also what is left as it is counts.
    """
    found: set[Unit] = set()
    waiting: list[Unit] = [*starts]
    for unit in starts:
        if isinstance(unit, Function) and unit.owner is not None and unit.sets_up:
            waiting += [f for f in facts.functions if f.owner is not None and f.owner.is_related(unit.owner)]
    while waiting:
        unit = waiting.pop()
        if unit in found or not (also_left or facts.is_editable(unit)):
            continue
        found.add(unit)
        waiting += _entered(facts, unit)
    return found


def _entered(facts: Facts, unit: Unit) -> list[Unit]:
    return facts.once(_Entered)[unit]


class _Entered(dict[Unit, list[Unit]]):
    """What each unit calls, or defines: many decisions ask for all that a program reaches."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, unit: Unit) -> list[Unit]:
        facts, found = self._facts, [*self._facts.nested(unit)]
        for node in facts.own(unit):
            if isinstance(node, ast.Call):
                found += [target for target in facts.targets(node) if not _is_model_code(facts, target)]
                found += [step for step in steps(facts) if node in step.calls and step not in found]
                found += _closures(facts, node)
        self[unit] = list(found)
        return self[unit]


def _closures(facts: Facts, call: ast.Call) -> list[Function]:
    """What an optimizer is given to call, `optimizer.step(closure)`: it runs as the rest of the loop does."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "step"):
        return []
    if not origins(facts.receiver(call), Role.OPTIMIZER):
        return []
    given = arguments(call)
    return [value.unit for each in given for value in facts.values(each) if isinstance(value.unit, Function)]


#: What the model, or the loader's workers, call.
_INSIDE = frozenset({Role.MODEL, Role.CRITERION, Role.DATASET, Role.SAMPLER})


def _is_model_code(facts: Facts, unit: Function) -> bool:
    """Methods of models and data sets run inside the model or the loader's workers; they have no accelerator."""
    return unit.owner is not None and bool(facts.roles_of_bases(unit.owner) & _INSIDE) and unit not in steps(facts)


def entered_beside_models(facts: Facts, code: ast.AST) -> list[Function]:
    """The functions that some code leads to, without those by which models run."""
    called = (unit for unit in reached_by(facts, entered(facts, code)) if isinstance(unit, Function))
    return [unit for unit in called if not is_inside_model(facts, unit)]


def is_inside_model(facts: Facts, unit: Unit) -> bool:
    """Whether a unit is a method of a model or of a loss function, and runs in its forward."""
    owner = unit.owner if isinstance(unit, Function) else None
    is_method = owner is not None and bool(facts.roles_of_bases(owner) & {Role.MODEL, Role.CRITERION})
    return is_method and unit not in steps(facts)


def _is_own(program: Program, unit: Function) -> bool:
    """The home itself, what is defined in it, and the methods of its class: each has the accelerator that it makes."""
    home = program.start
    if not isinstance(home, Function):
        return False
    above: Function | None = unit
    while above is not None:
        if above is home or (home.owner is not None and above.owner is not None and home.owner.is_related(above.owner)):
            return True
        above = above.parent
    return False


# --- calls from outside ---------------------------------------------------------------------------------------------


def _entered_at(facts: Facts, program: Program, unit: Function, reached: set[Unit]) -> str | None:
    """The place of a call of a function in code that the program does not reach; None where there is none."""
    if _is_own(program, unit):
        return None
    for call in facts.callers(unit):
        if _is_outside(facts, program, call.caller.original, reached, set()):
            return f"{facts.file(call.node).path}:{call.node.lineno}"
    return None


def _is_outside(facts: Facts, program: Program, unit: Unit, reached: set[Unit], seen: set[Unit]) -> bool:
    """Whether code runs without the program's home having been entered."""
    if unit in reached or unit in seen:
        return False
    seen.add(unit)
    if isinstance(unit, Module):
        return True
    above = [call.caller.original for call in facts.callers(unit)]
    if not above and is_run_by_tests(unit):
        return True
    return any(_is_outside(facts, program, caller, reached, seen) for caller in above)


def _imported(facts: Facts, reached: set[Unit]) -> Iterator[tuple[Function, str]]:
    """Functions that files import which were not read, and methods of classes whose names such a file says.

    Of what objects of such a class hold, those that it says behind a dot: `data.alphabet.get(0)`.
    """
    modules = {unit.module.file: unit.module for unit in reached}
    for file, names in importers(facts.project, modules, (module.file for module in facts.modules)).items():
        for name, place in names.items():
            for value in modules[file].names.get(name, ()):
                if isinstance(value.unit, Function):
                    yield value.unit.original, place
                elif isinstance(value.unit, Class):
                    said = [u for u in _methods(value.unit) if u.name.startswith("__") or _says(facts, place, u)]
                    found = (unit for unit in reached_by(facts, said) if isinstance(unit, Function))
                    yield from ((unit.original, place) for unit in found)
                    yield from ((unit, place) for unit in _of_held(facts, value.unit) if _calls(facts, place, unit))


def _methods(cls: Class) -> Iterator[Function]:
    members = (member.unit for values in cls.names.values() for member in values)
    return (unit.original for unit in members if isinstance(unit, Function))


def _of_held(facts: Facts, cls: Class) -> Iterator[Function]:
    """The methods of the project's objects that objects of a class hold, and of what those hold."""
    found, waiting = {cls}, [cls]
    while waiting:
        stored = (
            node for unit in _methods(waiting.pop()) for node in facts.own(unit) if isinstance(node, ast.Attribute)
        )
        values = (value for node in stored if isinstance(node.ctx, ast.Store) for value in facts.values(node))
        held = {value.unit for value in values if value.role is Role.INSTANCE and isinstance(value.unit, Class)} - found
        found |= held
        waiting += held
        for each in held:
            yield from _methods(each)


def _says(facts: Facts, place: str, method: Function, before: bytes = rb"\b") -> bool:
    """Whether the file of a place says the name of a method, in a text for `getattr()`, too."""
    content = facts.project.disk.content(str(Path(place.rpartition(":")[0]).resolve())) or b""
    return re.search(before + method.name.encode() + rb"\b", content) is not None


def _calls(facts: Facts, place: str, method: Function) -> bool:
    """Whether it says that behind a dot."""
    return _says(facts, place, method, rb"\.\s*")
