"""Loaders that are made in another unit than the model and the optimizer, and are prepared there.

Only the model and the optimizer have to be prepared together. A loader that a method makes anew for each epoch, or one
that an object makes to hand out its batches, is prepared where it is made, before anything else gets to know it: so all
who use it have the prepared one. Where one function makes several of them, for different calls, those are prepared by
the callers, each on its own. Loaders of which nobody knows at which place of a list, or under which key, they stand are
prepared one by one as they are made, by whatever names they go then. Where a function that makes models is called
again, the accelerator and the loaders are made once, by what calls it.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import COMPREHENSIONS, TRIES, start_of
from migrate.analysis.units import Function, Unit
from migrate.programs.home.around import is_around
from migrate.programs.home.first_looks import below_looks
from migrate.programs.home.homes import Home, Wanted, find
from migrate.programs.home.naming import Named, bound
from migrate.programs.reach.outsiders import units_from

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops


def parted(facts: Facts, loops: Loops, wanted: Wanted, together: Home | None) -> tuple[Home | None, tuple[Named, ...]]:
    """The home, and the loaders that are prepared elsewhere.

    Those are none where the loaders have names at home: `together`, unless that would leave the raw model in the object
    that trains it.
    """
    if wanted.by_key or not wanted.loaders:
        return together, ()
    if together is not None:
        unfit = (_leaves_raw(facts, loops, together, wanted), _handed_by_module(facts, together, wanted))
        if not any(unfit) and not _of_one_place(facts, together, wanted.loaders):
            return together, ()
    home = find(facts, replace(wanted, loaders=set()))
    if home is None or (together is not None and home.start is not home.unit):
        return together, ()
    if loaders := _elsewhere(facts, loops, wanted, home):
        return home, loaders
    above = _above(facts, home, wanted.loaders) if together is None else None
    if above is None or above.entry is None or not (loaders := _elsewhere(facts, loops, wanted, above)):
        return together, ()
    return above, tuple(below_looks(facts, loops, named, above.entry) for named in loaders)


def _above(facts: Facts, home: Home, loaders: set[ast.AST]) -> Home | None:
    """A home with the accelerator made above it, where all its loaders are made.

    `train(rate)` makes a model and its optimizer, and is called for several rates.
    """
    makers = {facts.unit(facts.source(origin)) for origin in loaders}
    if len(makers) != 1 or home.start is not home.unit or _is_made_at_times(facts, home):
        return None
    (start,) = makers
    if start is home.unit or not facts.is_editable(start) or home.unit not in units_from(facts, start):
        return None
    calls = (node for node in facts.own(start) if isinstance(node, ast.Call))
    leading = (call for call in calls if home.unit in units_from(facts, *facts.targets(call)))
    entry = min(leading, key=start_of, default=None)
    return None if entry is None else replace(home, start=start, entry=entry)


def _is_made_at_times(facts: Facts, home: Home) -> bool:
    """Whether a home makes a model or an optimizer in some calls only."""
    made = (each for role in (Role.MODEL, Role.OPTIMIZER) for each in home.named(facts, role, None))
    above = (node for named in made for each in named.statements for node in facts.tree(each).up(each))
    return any(isinstance(node, (ast.If, *TRIES)) for node in above)


def _handed_by_module(facts: Facts, home: Home, wanted: Wanted) -> bool:
    """Whether an `__init__` would prepare a loader of its module, which hands it on itself."""
    if not isinstance(home.start, Function) or not home.start.sets_up:
        return False
    names = {named.target for named in home.named(facts, Role.LOADER, wanted.loaders) if named.module is not None}
    own = facts.own(home.start.module)
    return any(isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names for node in own)


def _of_one_place(facts: Facts, home: Home, wanted: set[ast.AST] | None) -> set[ast.AST]:
    """Loaders that have names at home and cannot be told apart: `train, val = [DataLoader(d) for d in sets]`."""
    named = [each for each in home.named(facts, Role.LOADER, wanted) if each.statements and each.module is None]
    mixed = _mixed_up(facts, home.unit) if named else set()
    return {
        origin
        for each in named
        for origin in each.origins
        if origin in mixed
        or (_is_in_comprehension(facts, origin) and facts.singles.again(origin, home.unit, each.statements[-1]))
    }


def _is_in_comprehension(facts: Facts, origin: ast.AST) -> bool:
    source = facts.source(origin)
    return any(isinstance(above, COMPREHENSIONS) for above in facts.tree(source).up(source))


def _mixed_up(facts: Facts, unit: Unit) -> set[ast.AST]:
    """Loaders that two names of one statement may mean: `train, val = loaders.values()` of keys that nobody knows."""
    by_statement: dict[ast.stmt, set[ast.AST]] = {}
    mixed: set[ast.AST] = set()
    for binding in facts.bindings_in(unit):
        statement = binding.statement
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], (ast.Tuple, ast.List)):
            found = origins(binding.values, Role.LOADER)
            mixed |= by_statement.setdefault(statement, set()) & found
            by_statement[statement] |= found
    return mixed


def _leaves_raw(facts: Facts, loops: Loops, home: Home, wanted: Wanted) -> bool:
    """Whether a home has a name of its own for a model, and has the optimizer through an object that runs the model."""
    optimizers = home.named(facts, Role.OPTIMIZER, wanted.optimizers)
    having = {holder for named in optimizers for holder in named.holders}
    models = (named for named in home.named(facts, Role.MODEL, wanted.models) if named.target.isidentifier())
    kept = {o for named in models for o in named.origins if any(h in having for h, _ in facts.singles.holders(o))}
    units = {
        unit for loop in loops.training if loop.unit in wanted.trains for unit in loops.updates.functions(loop.node)
    }
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and any(value.origin in having for value in facts.values(node.func.value))
        and bool(origins(facts.values(node.func), Role.MODEL) & kept)
        for unit in units | wanted.trains
        for node in facts.own(unit)
    )


def _elsewhere(facts: Facts, loops: Loops, wanted: Wanted, home: Home) -> tuple[Named, ...]:
    """The loaders that have no name at home, as they are prepared; none if not all of them can be."""
    near = _near(facts, home, wanted.loaders)
    found: dict[ast.AST, Named] = {}
    inside = units_from(facts, home.start, home.unit)
    for origin in sorted(wanted.loaders - near, key=start_of):
        if origin not in found:
            named = next((n for n in _ways(facts, origin) if _can_reach(facts, home.start, n.unit, inside)), None)
            if named is None:
                return ()
            found |= dict.fromkeys(named.origins, named)
    for named in _beside(facts, loops, home, inside, {*found, *near}):
        found |= dict.fromkeys(named.origins - found.keys(), named)
    return tuple({id(each): each for each in found.values()}.values())


def _near(facts: Facts, home: Home, wanted: set[ast.AST] | None) -> set[ast.AST]:
    """Where the loaders were made that have a name at home, each one of its own."""
    named = [each for each in home.named(facts, Role.LOADER, wanted) if each.module is None]
    return {origin for each in named for origin in each.origins} - _of_one_place(facts, home, wanted)


def _ways(facts: Facts, origin: ast.AST) -> Iterator[Named]:
    """The ways in which a loader can be prepared, the best first."""
    made, given = _by_maker(facts, origin), _by_caller(facts, origin)
    several = len(facts.twins(origin)) > 1
    yield from (named for named in ((given, made) if several else (made, given)) if named is not None)


def _can_reach(facts: Facts, start: Unit, unit: Unit | None, inside: Container[Unit]) -> bool:
    """Whether the accelerator can be brought to a unit: by a call, or by the object that has it."""
    return unit is not None and (unit in inside or is_around(facts, start, unit))


def _by_maker(facts: Facts, origin: ast.AST) -> Named | None:
    """A loader under the name that it is given where it is made, or without one; with all that are made there."""
    source = facts.source(origin)
    if not isinstance(source, ast.Call):
        return None
    unit = facts.unit(source)
    if not facts.is_editable(unit) or (isinstance(unit, Function) and isinstance(unit.node, ast.Lambda)):
        return None
    tree = facts.tree(source)
    made, statement = frozenset(facts.twins(origin)), tree.statement(source)
    if isinstance(statement, ast.Assign) and statement.value is source and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, (ast.Name, ast.Attribute)) and not _is_shared(unit, target):
            return Named(ast.unparse(target), Role.LOADER, made, (statement,), unit=unit)
    return Named(ast.unparse(source.func), Role.LOADER, made, (statement,), unit=unit, call=source)


def _is_shared(unit: Unit, target: ast.expr) -> bool:
    """Whether a name belongs to more than the unit: another may read it at any time."""
    return not isinstance(target, ast.Name) and not isinstance(unit, Function)


def _by_caller(facts: Facts, origin: ast.AST) -> Named | None:
    """A loader that a function makes for one of its callers, under the name that it has there."""
    source = facts.source(origin)
    maker = facts.unit(source)
    units = [unit for unit in _naming(facts, origin) if unit is not maker and facts.is_editable(unit)]
    if len(units) != 1 or _is_run_over(facts, maker, origin):
        return None
    named = bound(facts, units[0], Role.LOADER, {origin})
    if len(named) != 1 or not is_handed_up(facts, origin) or "." in named[0].target:
        return None
    return replace(named[0], unit=units[0])


def _beside(facts: Facts, loops: Loops, home: Home, inside: Container[Unit], known: set[ast.AST]) -> Iterator[Named]:
    """The loaders that are evaluated on, and are made where the accelerator can be brought, too."""
    near = _near(facts, home, None)
    for loop in loops.evaluation:
        for origin in sorted(loop.loaders - near, key=start_of):
            ways = (way for way in _ways(facts, origin) if _can_reach(facts, home.start, way.unit, inside))
            other = next(ways, None)
            is_mixed = not known.isdisjoint(loop.loaders)  # the pass is one over a prepared loader in any case
            if other is not None and (other.unit is not home.unit or is_mixed) and other.origins.isdisjoint(known):
                known |= other.origins
                yield other


def _naming(facts: Facts, origin: ast.AST) -> list[Unit]:
    """The units that give a loader a name, and not only its batches."""
    return [unit for unit in facts.units_naming([origin]) if bound(facts, unit, Role.LOADER, {origin})]


def is_handed_up(facts: Facts, origin: ast.AST) -> bool:
    """Whether nothing holds an object but what a function returns."""
    return all(isinstance(facts.source(holder), ast.Tuple) for holder, _ in facts.singles.holders(origin))


def _is_run_over(facts: Facts, unit: Unit, origin: ast.AST) -> bool:
    source = facts.source(origin)
    over = (node.iter for node in facts.own(unit) if isinstance(node, (ast.For, ast.comprehension)))
    return any(source in map(facts.source, facts.loaders(facts.values(each))) for each in over)
