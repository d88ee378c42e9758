"""Optimizers that are made anew in each run of a function, which trains a model that was there before.

`fit(epochs, lr, model, ...)` makes its optimizer, and is called for some epochs at one rate, and for some more at
another. The model and the loaders are prepared once, at a home above; each optimizer where it is made.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import start_of
from migrate.programs.home.elsewhere import is_handed_up, parted
from migrate.programs.home.homes import comes_again, find
from migrate.programs.home.naming import Named, bound, covers
from migrate.programs.home.raw import given, goes_over_raw
from migrate.programs.home.reading import is_read, read_before
from migrate.programs.reach.callees import reached
from migrate.programs.reach.outsiders import units_beside, units_from
from migrate.programs.values.handing_back import is_handed_back

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.home.homes import Home, Wanted
    from migrate.programs.loops import LoopFact, Loops


@dataclass(frozen=True, slots=True)
class Anew:
    """The home of the model and the loaders, and what is prepared in other units."""

    home: Home
    loaders: tuple[Named, ...]
    optimizers: tuple[Named, ...]


def made_anew(
    facts: Facts, loops: Loops, training: Iterable[LoopFact], wanted: Wanted, together: Home | None
) -> Anew | None:
    """A home without those optimizers that functions below it make for themselves; None: there is none.

    It is not asked for where all have names `together`, unless an optimizer gets its name there by a training, one
    function goes over a loader as it is prepared there and as it was handed over, or a loader of a module is read
    before that.
    """
    if together is not None and not any(is_met(facts, loops, together, wanted) for is_met in _UNFIT):
        return None
    lasting = replace(wanted, optimizers=set())
    home, loaders = parted(facts, loops, lasting, find(facts, lasting))
    if home is None or _is_entered_again(facts, home, lasting):
        return None
    at_home = home.named(facts, Role.OPTIMIZER, wanted.optimizers)
    named = {o for each in at_home for o in each.origins} - _late(facts, loops, home, wanted)
    inside = units_from(facts, home.start, home.unit)
    steps = [(loop.unit, loops.trained_by(loop)) for loop in training]
    unnamed = wanted.optimizers - named
    found = (*_made(facts, inside - {home.unit}, steps, unnamed), *_handed_on(facts, home.unit, steps, unnamed))
    return Anew(home, loaders, found) if covers(found, unnamed) else None


def beside(facts: Facts, optimizers: Iterable[Named]) -> Iterator[Named]:
    """The schedulers of optimizers that are made anew, where they are made beside them."""
    found: dict[Named, None] = {}
    for named in optimizers:
        for each in bound(facts, named.unit, Role.SCHEDULER, None) if named.unit is not None else ():
            if any(origins(facts.over(o), Role.OPTIMIZER) & named.origins for o in each.origins):
                found[replace(each, unit=named.unit)] = None
    for each in found:
        yield from _in_turn(facts, each)


def _late(facts: Facts, loops: Loops, home: Home, wanted: Wanted) -> set[ast.AST]:
    """Where the optimizers were made that have a name at home only once they have trained: `optimizer = fit(model)`."""
    named = (each for each in home.named(facts, Role.OPTIMIZER, wanted.optimizers) if each.statements)
    return {o for each in named if all(map(loops.trains, each.statements)) for o in each.origins}


def _is_entered_again(facts: Facts, home: Home, lasting: Wanted) -> bool:
    """Whether a home comes to one of the objects more than once, under whatever name it has there."""
    named = (*home.named(facts, Role.MODEL, lasting.models), *home.named(facts, Role.LOADER, lasting.loaders))
    return any(comes_again(facts, home.unit, each) is not None for each in named)


def _is_met_both_ways(facts: Facts, loops: Loops, home: Home, wanted: Wanted) -> bool:
    """Whether a loop runs over what a home is handed and prepares, at times as it was before."""
    handed = given(home.named(facts, Role.LOADER, wanted.loaders))
    if not handed:
        return False
    inside = units_from(facts, home.unit)
    raw = units_beside(facts, home.unit, units_from(facts, home.start, home.unit))
    met = (loop for loop in loops.evaluation if loop.loaders & wanted.loaders and loop.unit in raw)
    return any(goes_over_raw(facts, handed, inside, loop) is None for loop in met)


def _is_read_before(facts: Facts, loops: Loops, home: Home, wanted: Wanted) -> bool:
    """Whether a home prepares a loader of its module that is read where the home does not come first."""
    inside = units_from(facts, home.unit)
    named = [each for each in home.named(facts, Role.LOADER, None) if is_read(facts, inside, each)]
    return any(read_before(facts, home.unit, inside, named))


_UNFIT = (_late, _is_met_both_ways, _is_read_before)  # why objects are not prepared where all have names


def _made(
    facts: Facts, inside: Container[Unit], steps: list[tuple[Unit, set[ast.AST]]], wanted: set[ast.AST]
) -> Iterator[Named]:
    """The optimizers under the names that they have in functions which make them and go on to train with them."""
    for unit in facts.functions:
        named = bound(facts, unit, Role.OPTIMIZER, wanted) if unit in inside and facts.is_editable(unit) else ()
        run = reached(facts, [unit]) if named else set()
        for each in named:
            trains = {trains for trains, stepped in steps if stepped & each.origins}
            if trains <= run and _is_its_own(facts, run, each):
                yield from _in_turn(facts, replace(each, unit=unit))


def _handed_on(
    facts: Facts, home: Unit, steps: list[tuple[Unit, set[ast.AST]]], wanted: set[ast.AST]
) -> Iterator[Named]:
    """The optimizers that a home makes as an argument of what trains with them: `train(model, loader, SGD(...))`.

    The model and the loaders are prepared above that call.
    """
    for origin in sorted(wanted, key=start_of):
        source = facts.source(origin)
        tree = facts.tree(source)
        if not isinstance(source, ast.Call) or facts.unit(source) is not home or len(facts.twins(origin)) > 1:
            continue
        call = next((above for above in tree.up(source) if isinstance(above, ast.Call)), None)
        if call is None or not is_argument(facts, source) or any(True for _ in tree.loops(source)):
            continue
        if {unit for unit, stepped in steps if origin in stepped} <= reached(facts, facts.targets(call)):
            name, statement = ast.unparse(source.func), tree.statement(source)
            yield Named(name, Role.OPTIMIZER, frozenset({origin}), (statement,), unit=home, call=source)


def is_argument(facts: Facts, node: ast.AST) -> bool:
    """Whether what is made is an argument of a call: `fit(net, SGD(net.parameters()))`."""
    above = facts.tree(node).parents[node]
    return isinstance(above, ast.keyword) or (isinstance(above, ast.Call) and node in above.args)


def _in_turn(facts: Facts, named: Named) -> Iterator[Named]:
    """An object; where another is made under its name after it was used, each that is made, for itself.

    What a function is handed and gives back, `optimizer = set_rate(optimizer, epoch)`, is the one that there was.
    """
    unit = named.unit
    assert unit is not None
    given = [each for each in named.statements if not is_handed_back(facts, each, named.target)]
    made = sorted(given or named.statements, key=lambda statement: statement.lineno)
    between = range((made[0].end_lineno or made[0].lineno) + 1, made[-1].lineno)
    nodes = (node for node in facts.own(unit) if isinstance(node, (ast.Name, ast.Attribute)))
    read = (node for node in nodes if node.lineno in between and isinstance(node.ctx, ast.Load))
    if not any(ast.unparse(node) == named.target for node in read):
        yield replace(named, statements=tuple(made))
        return
    for statement in made:
        bindings = (b for b in facts.bindings_in(unit) if b.statement is statement and b.target == named.target)
        mine = frozenset(o for binding in bindings for o in origins(binding.values, named.role)) & named.origins
        yield replace(named, statements=(statement,), origins=mine or named.origins)


def _is_its_own(facts: Facts, makers: Container[Unit], named: Named) -> bool:
    """Whether all that a name is given is made by some units, and nothing else holds that by then."""
    made = {statement.value for statement in named.statements if isinstance(statement, ast.Assign)}
    sources = {origin: facts.source(origin) for origin in named.origins}
    return all(
        facts.unit(source) in makers and (source in made or is_handed_up(facts, origin))
        for origin, source in sources.items()
    )
