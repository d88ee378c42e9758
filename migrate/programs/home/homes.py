"""The home of a program: where its objects have names and prepare is called, and where the accelerator is made.

These are one unit where everything is made in one place. Where a function is handed its model, or a method finds it in
its object, prepare is called there, and the accelerator is made by what makes the model: the caller, the `__init__`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Class, Function, Module, Unit
from migrate.programs.home.entry import is_set_below, is_there
from migrate.programs.home.handed import others_run_raw
from migrate.programs.home.naming import Named, bound, covers, holding, reachable
from migrate.programs.home.reading import read_before
from migrate.programs.reach.callees import entered, reached
from migrate.programs.reach.outsiders import is_inside_model, units_from

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts


_DEEPEST = 6  # calls between where a model is made and where it is prepared


@dataclass(frozen=True, slots=True)
class Home:
    """Where prepare is called, where the accelerator is made, and in that the call that leads to prepare."""

    unit: Unit
    start: Unit
    entry: ast.AST | None = None  # None: they are one, or the accelerator is made by an `__init__`
    is_wide: bool = False  # whether parameters and what objects hold count as names
    by_key: frozenset[ast.AST] = frozenset()

    def named(self, facts: Facts, role: Role, wanted: set[ast.AST] | None) -> tuple[Named, ...]:
        """The names of objects of a role; None: of all."""
        return (
            reachable(facts, self.unit, role, wanted, self.by_key)
            if self.is_wide
            else bound(facts, self.unit, role, wanted)
        )


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where the objects were made that must have a name."""

    optimizers: set[ast.AST]
    models: set[ast.AST]
    loaders: set[ast.AST]
    by_key: frozenset[ast.AST] = frozenset()  # the loaders that have to be prepared where a dictionary holds them
    trains: frozenset[Unit] = frozenset()  # the units of the training loops


def find(facts: Facts, wanted: Wanted, *, everywhere: bool = False) -> Home | None:
    """The unit in which every object has a name; a function before a module, where there are both."""
    fitting = [
        unit
        for unit in facts.units_naming(wanted.optimizers or wanted.models)
        if (everywhere or facts.is_editable(unit))
        and not wanted.by_key
        and _names_all(facts, unit, wanted, is_wide=False)
        and not others_run_raw(facts, unit, bound(facts, unit, Role.LOADER, wanted.loaders))
    ]
    if fitting:
        unit = _leading(facts, fitting, wanted)
        return Home(unit, _first_init(facts, unit))
    return next(_wide(facts, wanted, everywhere=everywhere), None)


def _leading(facts: Facts, fitting: list[Unit], wanted: Wanted) -> Unit:
    """The unit that leads to the training, as against one that is handed all objects to load what they were."""
    functions = [unit for unit in fitting if isinstance(unit, Function)] or fitting
    if len(functions) == 1:
        return functions[0]
    return next((unit for unit in functions if wanted.trains <= units_from(facts, unit)), functions[0])


def _names_all(facts: Facts, unit: Unit, wanted: Wanted, *, is_wide: bool) -> bool:
    home = Home(unit, unit, is_wide=is_wide, by_key=wanted.by_key)
    optimizers = home.named(facts, Role.OPTIMIZER, wanted.optimizers)
    if not covers(optimizers, wanted.optimizers):  # most units end here, before more is asked
        return False
    loaders = home.named(facts, Role.LOADER, wanted.loaders)
    if not covers(loaders, wanted.loaders):
        return False
    models = home.named(facts, Role.MODEL, wanted.models) if wanted.models else ()
    if wanted.models and not models:
        return False
    # a unit that is given what it only gives its name again is no home
    return is_wide or not any(named.is_back for named in (*optimizers, *models, *loaders))


def _wide(facts: Facts, wanted: Wanted, *, everywhere: bool) -> Iterator[Home]:
    """The homes in which some objects are given, or are held by other objects.

    Those come first in which what prepare names is held by nothing else, then those that are given least; of two
    functions that which leads to the training.
    """
    found: list[tuple[int, int, bool, bool, Home]] = []
    for unit in facts.units:
        if not (everywhere or facts.is_editable(unit)) or (given := _given(facts, unit, wanted)) is None:
            continue
        if not _is_in_time(facts, unit, given, wanted):
            continue
        home = _started(facts, unit, given, wanted.by_key)
        if home is not None and (everywhere or facts.is_editable(home.start)):
            leads = wanted.trains <= units_from(facts, unit)
            found.append((_held_beside(facts, unit, wanted), len(given), isinstance(unit, Module), not leads, home))
    yield from (home for *_, home in sorted(found, key=lambda each: each[:4]))


def _is_in_time(facts: Facts, unit: Unit, given: list[Named], wanted: Wanted) -> bool:
    """Whether a unit has all that it is given, once, and leads to the training that has the prepared ones from it."""
    if any(comes_again(facts, unit, each) for each in given) or _trains_at_once(facts, unit, wanted):
        return False
    if others_run_raw(facts, unit, reachable(facts, unit, Role.LOADER, wanted.loaders, wanted.by_key)):
        return False
    if any(is_set_below(facts, unit, each.target, each.origins) for each in given):
        return False
    of_modules = [each for each in given if each.module is not None]
    if of_modules:
        inside = units_from(facts, unit)
        if not wanted.trains <= inside:
            return False  # prepare would come too late for those who read the name
        if any(_hands_to_training(facts, node, wanted) for node in read_before(facts, unit, inside, of_modules)):
            return False
    is_there_yet = not any(_is_made_by(facts, unit, each) for each in of_modules)
    return is_there_yet and is_there(facts, unit, [each.target for each in given])


def _hands_to_training(facts: Facts, node: ast.AST, wanted: Wanted) -> bool:
    """`Trainer(model).fit(loader)`: whether a module reads its loader to train with it; it may prepare it as well."""
    return wanted.trains <= reached(facts, entered(facts, facts.tree(node).statement(node)))


def _is_made_by(facts: Facts, unit: Unit, named: Named) -> bool:
    """Whether a unit runs for what gives a module its name: it is not there yet, as in `trainer = Trainer()`."""
    assert named.module is not None
    name = named.target.partition(".")[0].partition("[")[0]
    made = (each.statement for each in facts.bindings_in(named.module) if each.target == name)
    return any(unit in reached(facts, entered(facts, statement)) for statement in made)


def _trains_at_once(facts: Facts, unit: Unit, wanted: Wanted) -> bool:
    """Whether a call that makes an object goes on to train with it: there is no place for prepare between the two."""
    for named in _named(facts, unit, wanted):
        made = {target for each in named.filled for target in entered(facts, each)}
        if made and wanted.trains <= reached(facts, made):
            return True
    return False


def _held_beside(facts: Facts, unit: Unit, wanted: Wanted) -> int:
    """How many objects that have a plain name are also held by other objects, which go on with the raw ones."""
    named = (each for each in _named(facts, unit, wanted) if each.target.isidentifier())
    return sum(any(facts.singles.holders(origin) for origin in each.origins) for each in named)


def _given(facts: Facts, unit: Unit, wanted: Wanted) -> list[Named] | None:
    """What a unit that knows all objects is given of them; None: it does not, or makes none of them."""
    if not _names_all(facts, unit, wanted, is_wide=True):
        return None
    named = _named(facts, unit, wanted)
    given = [each for each in named if not each.is_made]
    return given if len(given) < len(named) else None


def _named(facts: Facts, unit: Unit, wanted: Wanted) -> list[Named]:
    return [
        *reachable(facts, unit, Role.OPTIMIZER, wanted.optimizers),
        *reachable(facts, unit, Role.MODEL, wanted.models),
        *reachable(facts, unit, Role.LOADER, wanted.loaders, wanted.by_key),
    ]


def comes_again(facts: Facts, unit: Unit, named: Named) -> ast.AST | None:
    """What enters a unit more than once with one object, which would be prepared again."""
    several = (facts.singles.entered_again(unit, origin) for origin in named.origins)
    return next((again for again in several if again is not None), None)


def entered_again(facts: Facts, wanted: Wanted) -> tuple[Unit, Named, ast.AST] | None:
    """A unit that would be the home if it were not entered again with an object, that object, and what enters it."""
    for unit in facts.units:
        for named in _given(facts, unit, wanted) or ():
            if (again := comes_again(facts, unit, named)) is not None:
                return unit, named, again
    return None


def _started(facts: Facts, unit: Unit, given: list[Named], by_key: frozenset[ast.AST]) -> Home | None:
    """The home with what makes the objects that it is given: there the accelerator is made. None: no one such place."""
    if not given:
        return Home(unit, _first_init(facts, unit), is_wide=True, by_key=by_key)
    mine = {origin for each in given for origin in each.origins}
    start, entry = unit, None
    for _ in range(_DEEPEST):
        if isinstance(start, Function) and _is_held(facts, start, mine):
            init = _constructor(start)
            return None if init is None else Home(unit, init, is_wide=True, by_key=by_key)
        if isinstance(start, Module) or not _is_handed(facts, start, mine):
            made = _first_init(facts, unit) if start is unit else start
            return Home(unit, made, entry, is_wide=True, by_key=by_key)
        callers = facts.callers(start)
        above = {id(call.caller): call.caller for call in callers}
        if len(above) != 1 or any(call.handed is not None for call in callers):
            return None
        (start,) = above.values()
        entry = min((call.node for call in callers), key=lambda node: node.lineno)
    return None


def _is_handed(facts: Facts, unit: Function, mine: set[ast.AST]) -> bool:
    """Whether a function gets one of the objects by a parameter, or what holds one."""
    own = unit.itself.arg if unit.itself is not None else None
    return any(holding(facts, values, *_OBJECTS) & mine for name, values in unit.parameters.items() if name != own)


_CONSTRUCTORS = ("__post_init__", "__init__")
_OBJECTS = (Role.MODEL, Role.OPTIMIZER, Role.LOADER)


def _is_held(facts: Facts, unit: Function, mine: set[ast.AST]) -> bool:
    """Whether a method finds one of the objects in its own object."""
    if (itself := unit.itself) is None or unit.sets_up:
        return False
    return any(
        origins(held, *_OBJECTS) & mine
        for value in unit.parameters.get(itself.arg, ())
        if value.role is Role.INSTANCE and value.origin is not None
        for held in facts.holding(value.origin).values()
    )


def _first_init(facts: Facts, unit: Unit) -> Unit:
    """Of an `__init__` that of its base, which it calls and which runs before all else; else the unit itself.

    A base has the accelerator for all that are derived from it: where one of them is set up otherwise, it has none.
    """
    if not isinstance(unit, Function) or not unit.sets_up or is_inside_model(facts, unit):
        return unit
    first = _constructor(unit)
    if first is None or not facts.is_editable(first):
        return unit
    assert unit.owner is not None
    made = [cls for call in facts.callers(first) for cls in _classes_of(call.caller)]
    return first if made and all(unit.owner in cls.mro() for cls in made) else unit


def maker(facts: Facts, unit: Unit, trains: Collection[Unit]) -> Function | None:
    """The `__init__` that makes the accelerator for a method which sets up what other methods of its object train.

    `fit()` calls `self.build()` where there is no model yet: what `build()` prepares is there for its callers, too.
    """
    if not isinstance(unit, Function) or unit.owner is None or unit.itself is None or unit.sets_up:
        return None
    init = _constructor(unit)
    if init is None or not facts.is_editable(init) or units_from(facts, unit).issuperset(trains):
        return None
    methods = [each for each in trains if isinstance(each, Function) and each.itself is not None]
    are_beside = all(each.owner is not None and unit.owner in each.owner.mro() for each in methods)
    return init if len(methods) == len(trains) and are_beside else None


def _classes_of(unit: Unit) -> list[Class]:
    return [unit.owner] if isinstance(unit, Function) and unit.owner is not None else []


def _constructor(unit: Function) -> Function | None:
    """The first `__init__` that sets up a method's object: that of the base, which runs before all else."""
    assert unit.owner is not None
    inits = [value.unit for cls in unit.owner.mro() for name in _CONSTRUCTORS for value in cls.names.get(name, ())]
    entered = [init for init in inits if isinstance(init, Function) and init.sets_up and init.calls]
    return entered[-1] if entered else None
