"""Functions that keep an object which is prepared below them: closures of other functions, and what `partial` binds.

    loss_of = partial(compute_loss, model)       # goes on with the raw model
    step = make_step(model, optimizer)           # returns a function that has the `model` of make_step()
    loader, model, optimizer = accelerator.prepare(loader, model, optimizer)

A function that is defined at home reads the names of the home when it is called, and so has the prepared objects.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.partials import PARTIAL, is_of_partial
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import line_of
from migrate.analysis.units import Function
from migrate.programs.home.naming import holding
from migrate.programs.reach.callees import leading, nested, reached
from migrate.programs.training.gradients_off import without_gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.analysis.units import Unit

    IsRun = Callable[[Facts, ast.Name], bool]

_KEPT = (Role.LOADER, Role.MODEL)


def bound_before(
    facts: Facts, home: Unit, mine: set[ast.AST], names: Collection[str], end: int, is_run: IsRun
) -> ast.AST | None:
    """The call above a line of the home by which a function comes to keep one of some objects, and is called later.

    `is_run` says of a model's name whether something is done with the model there.
    """
    calls = (node for node in facts.own(home) if isinstance(node, ast.Call) and line_of(node) <= end)
    found = next((each for each in calls if _binds(facts, home, each, mine, end, is_run)), None)
    return found or next(_under_other_names(facts, home, mine, names, end, is_run), None)


def bound_outside(facts: Facts, home: Unit, given: set[ast.AST], is_run: IsRun) -> ast.AST | None:
    """The same of code that hands the home its objects, and whose own names stay what they are."""
    above = leading(facts, [home])
    for unit in sorted(above - {home}, key=lambda each: (each.module.path, line_of(_node(each)))):
        calls = [node for node in facts.own(unit) if isinstance(node, ast.Call)]
        entries = [each for each in calls if above & {*facts.targets(each)}]
        anew = {name for each in entries for name in _bound_at(facts, unit, each)}
        last = max(map(line_of, entries), default=0)
        for each in calls:
            if each in entries or (line_of(each) > last and not _has_raw(facts, each, given, anew)):
                continue
            if _binds(facts, unit, each, given, 0, is_run):
                return each
        for inner in nested(facts, unit):
            if inner not in above and _reads_outer(facts, inner, unit, given, anew, is_run):
                return inner.node
    return None


def _node(unit: Unit) -> ast.AST:
    return unit.node if isinstance(unit, Function) else unit.tree


def _has_raw(facts: Facts, call: ast.Call, given: set[ast.AST], anew: Collection[str]) -> bool:
    """Whether a call has an object by a name that is not of what has prepared it."""
    names = (node for node in ast.walk(call) if isinstance(node, ast.Name) and node.id not in anew)
    return any(holding(facts, facts.values(name), *_KEPT) & given for name in names)


def _bound_at(facts: Facts, unit: Unit, call: ast.Call) -> set[str]:
    """The names that the statement of a call gives what comes back: that may be prepared."""
    statement = facts.tree(call).statement(call)
    return {binding.target for binding in facts.bindings_in(unit) if binding.statement is statement}


def _binds(facts: Facts, unit: Unit, node: ast.Call, mine: set[ast.AST], end: int, is_run: IsRun) -> bool:
    """Whether a call of a unit has a function keep one of some objects, that is called below a line of the unit."""
    if PARTIAL in facts.called(node):
        return bool(_held(facts, node) & mine) and _is_called_below(facts, unit, node, end)
    kept = {origin for origin in mine if facts.singles.hands(node, origin) or _makes(facts, node, origin)}
    inside = reached(facts, facts.targets(node)) if kept else ()
    return any(_keeps(facts, each, kept, is_run) for each in inside if isinstance(each, Function) and each is not unit)


def _makes(facts: Facts, call: ast.Call, origin: ast.AST) -> bool:
    return any(facts.singles.is_made_in(unit, origin) for unit in facts.targets(call))


def _held(facts: Facts, call: ast.Call) -> set[ast.AST]:
    """The models and loaders that a partial function keeps."""
    function = facts.values(call.args[0]) if call.args else frozenset()
    bound: Values = frozenset().union(function, *facts.holding(call).values())
    return origins(bound, *_KEPT) | facts.loaders(bound) | facts.inside(bound, Role.MODEL)


def _is_called_below(facts: Facts, home: Unit, node: ast.Call, end: int) -> bool:
    """Whether what `partial` has made of a function may be called below a line of the home; a model always may."""
    units = (
        [value.unit for value in facts.values(node.args[0]) if isinstance(value.unit, Function)] if node.args else []
    )
    calls = [call for unit in units for call in facts.callers(unit) if is_of_partial(call)]
    return not units or any(call.caller is not home or line_of(call.node) > end for call in calls)


def _keeps(facts: Facts, unit: Function, mine: set[ast.AST], is_run: IsRun) -> bool:
    """Whether a function hands out one of its own that keeps an object."""
    for node in facts.own(unit):
        if isinstance(node, ast.Call) and PARTIAL in facts.called(node) and _held(facts, node) & mine:
            return True
    inside = {unit, *nested(facts, unit)}
    return any(
        _reads(facts, inner, mine, inside, is_run)
        for inner in inside
        if inner is not unit and any(call.caller not in inside for call in facts.callers(inner))
    )


def _reads(facts: Facts, inner: Function, mine: set[ast.AST], inside: set[Function], is_run: IsRun) -> bool:
    """Whether a function, or one inside of it, goes on with an object that a function around it has."""
    own = {inner, *nested(facts, inner)}
    return any(
        isinstance(node, ast.Name)
        and (owner := _owner(unit, node.id)) in inside
        and owner not in own
        and _goes_on(facts, node, mine, is_run)
        for unit in own
        for node in facts.own(unit)
    )


def _owner(unit: Function, name: str) -> Function | None:
    """The function of which a name is, as it is read in another; None: it is the module's."""
    above: Function | None = unit
    while above is not None and name not in above.names and name not in above.parameter_names:
        above = above.parent
    return above


def _goes_on(facts: Facts, node: ast.Name, mine: set[ast.AST], is_run: IsRun) -> bool:
    """Whether a name is read to go over a loader, or to train a model."""
    values = facts.values(node)
    if not isinstance(node.ctx, ast.Load):
        return False
    if origins(values, Role.MODEL) & mine and is_run(facts, node) and not without_gradients(facts, node):
        return True
    if not (origins(values, Role.LOADER) | facts.loaders(values)) & mine:
        return False
    above = facts.tree(node).parents[node]
    is_measured = isinstance(above, ast.Call) and facts.called(above) == {"builtins.len"}
    return not is_measured and not isinstance(above, ast.Attribute)


def _under_other_names(
    facts: Facts, home: Unit, mine: set[ast.AST], names: Collection[str], end: int, is_run: IsRun
) -> Iterator[ast.AST]:
    """The functions of the home that read an object by a name which prepare does not change."""
    for inner in nested(facts, home):
        if any(call.caller is not home or line_of(call.node) > end for call in facts.callers(inner)):
            if _reads_outer(facts, inner, home, mine, names, is_run):
                yield inner.node


def _reads_outer(
    facts: Facts, inner: Function, unit: Unit, mine: set[ast.AST], names: Collection[str], is_run: IsRun
) -> bool:
    """Whether a function goes on with an object by a name of the unit around it, other than some names."""
    return any(
        isinstance(node, ast.Name)
        and node.id not in names
        and _owner(inner, node.id) is unit
        and _goes_on(facts, node, mine, is_run)
        for node in facts.own(inner)
    )
