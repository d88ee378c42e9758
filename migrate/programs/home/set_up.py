"""A method that an object's `__init__` calls to make its models: what it prepares is there for all other methods.

    class Solver:
        def __init__(self, loader):
            self.loader = loader
            self.build_model()

So it is where the one who makes the object calls that method next: `solver = Solver(loader)`, `solver.build_model()`.
`build_model` prepares the loader under the name that the object has for it, before any other method can run. The raw
one goes on under the names of those who handed it over, and must not be used there any more.
"""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Class, Function
from migrate.programs.home.made_with import stays_itself
from migrate.programs.reach.callees import nested, reached
from migrate.programs.reach.outsiders import raw_units, units_from
from migrate.programs.reach.self_training import is_itself

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree
    from migrate.analysis.units import Unit
    from migrate.programs.program import Program

_KEPT = (Role.MODEL, Role.LOADER)


def after_setting_up(facts: Facts, program: Program) -> frozenset[Unit]:
    """The units that run when such an object is set up, with what they call; empty: the home is no such method."""
    home, start = program.home, program.start
    if not isinstance(home, Function) or not isinstance(start, Function) or not start.sets_up:
        return frozenset()
    if home.owner is None or home.owner is not start.owner:
        return frozenset()
    above = _above(facts, home, start)
    if above is None:
        return frozenset()
    early = units_from(facts, *(target for node in above for target in facts.targets(node)))
    over = {unit for unit in early if _is_over(facts, unit, {*above}, early)}
    makers = {start, *_called_there_alone(facts, home), *over}
    named = [each for each in (*program.models, *program.optimizers, *program.loaders) if each.unit is None]
    if not all(
        each.target.startswith("self.") and not _is_set_elsewhere(facts, each.target, home.owner, makers)
        for each in named
    ):
        return frozenset()
    methods = [unit for unit in facts.functions if unit.owner is home.owner and unit is not start]
    return frozenset(units_from(facts, *methods) - (early - units_from(facts, home)))


def running_raw(facts: Facts, program: Program) -> set[Unit]:
    """The units that run with objects that are not prepared, too."""
    return raw_units(facts, program) - after_setting_up(facts, program)


def _above(facts: Facts, unit: Function, start: Function, depth: int = 3) -> list[ast.Call] | None:
    """The calls of an object that run before the one call of a method; None: others may come first."""
    callers = facts.callers(unit)
    if len(callers) != 1 or depth < 0:
        return None
    call, caller = callers[0].node, callers[0].caller
    if isinstance(caller, Function) and caller.owner is start.owner:
        if facts.tree(call).statement(call) not in caller.body:
            return None
        further = [] if caller is start else _above(facts, caller, start, depth - 1)
        return None if further is None else [*further, *_calls(facts, caller, call.lineno)]
    makers = facts.callers(start)
    if len(makers) != 1 or makers[0].caller is not caller:
        return None
    between = _between(facts.tree(call), makers[0].node, call)
    if between is None or any(start.owner is target.owner for node in between for target in facts.targets(node)):
        return None
    return _calls(facts, start)


def _calls(facts: Facts, unit: Unit, below: float = math.inf) -> list[ast.Call]:
    """The calls of a unit above a line."""
    return [node for node in facts.own(unit) if isinstance(node, ast.Call) and node.lineno < below]


def _between(tree: Tree, first: ast.Call, second: ast.Call) -> list[ast.Call] | None:
    """The calls of the statements between those of two calls in one block; None: they stand in none, in this order."""
    above, below = tree.statement(first), tree.statement(second)
    block = tree.block(above)
    if above is below or not any(statement is below for statement in block) or below.lineno < above.lineno:
        return None
    passed = [each for each in block if above.lineno < each.lineno < below.lineno]
    return [node for statement in passed for node in ast.walk(statement) if isinstance(node, ast.Call)]


def _called_there_alone(facts: Facts, home: Function) -> set[Unit]:
    """The home, and the functions that nobody else calls, but for each other."""
    found: set[Unit] = {home}
    waiting = [unit for unit in reached(facts, [home]) if isinstance(unit, Function) and unit is not home]
    while more := [unit for unit in waiting if all(call.caller in found for call in facts.callers(unit))]:
        found.update(more)
        waiting = [unit for unit in waiting if unit not in found]
    return found


def _is_over(facts: Facts, unit: Unit, calls: Collection[ast.AST], early: Collection[Unit]) -> bool:
    """Whether some calls alone lead to a unit, by what they enter."""
    if not isinstance(unit, Function) or not facts.callers_known(unit):
        return False
    return all(call.node in calls or call.caller in early for call in facts.callers(unit))


def _is_set_elsewhere(facts: Facts, target: str, owner: Class, units: Collection[Unit]) -> bool:
    """Whether another object may come under the name of one that is prepared: `solver.loader = other`."""
    name = target.removeprefix("self.")
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, ast.Store)
        and not _is_set_to_itself(facts, node)
        and not _is_of_others(facts, node, owner)
        for unit in facts.units
        if unit not in units
        for node in facts.own(unit)
    )


def _is_of_others(facts: Facts, target: ast.Attribute, owner: Class) -> bool:
    """Whether an attribute is set for objects of other classes only: `self.model` of an evaluator."""
    values = facts.values(target.value)
    classes = [value.unit for value in values if value.role is Role.INSTANCE and isinstance(value.unit, Class)]
    return bool(classes) and len(classes) == len(values) and not any(map(owner.is_related, classes))


def _is_set_to_itself(facts: Facts, target: ast.Attribute) -> bool:
    """`self.model = self.model.train()`: it is the same object."""
    above = facts.tree(target).parents[target]
    return isinstance(above, ast.Assign) and stays_itself(above, ast.unparse(target))


def raw_reads(facts: Facts, program: Program, later: Collection[Unit]) -> Iterator[ast.Name | ast.Attribute]:
    """Where the raw objects are read by others than those who made them, and handed them over."""
    home, start = program.home, program.start
    assert isinstance(home, Function)
    assert isinstance(start, Function)
    given = [named for named in (*program.models, *program.loaders) if named.is_given and named.unit is None]
    mine = {origin for named in given for origin in named.origins}
    targets = {named.target for named in given}
    made = max((call.node.lineno for call in facts.callers(home) if call.caller is start), default=None)
    sites = {call.caller: call.node.lineno for call in facts.callers(start)}
    inside = set(nested(facts, start))
    for unit in facts.units:
        is_maker = unit not in sites and any(facts.singles.is_made_in(unit, origin) for origin in mine)
        if (unit in later and unit not in inside) or is_maker:
            continue
        for node in facts.own(unit):
            if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
                continue
            if not origins(facts.values(node), *_KEPT) & mine or is_itself(facts, node):
                continue
            if _is_handed_over(facts, node, (start, home)):
                continue
            if unit is start:
                if (made is not None and node.lineno > made) or not _only_looks(facts, node, targets):
                    yield node
            elif node.lineno > sites.get(unit, 0):
                yield node


def _only_looks(facts: Facts, node: ast.AST, targets: Collection[str]) -> bool:
    """`self.loader = loader`, `len(loader)`, `loader.dataset`, `loader is None`: nothing is kept of the raw object."""
    above = facts.tree(node).parents[node]
    if isinstance(above, ast.Assign):
        return above.value is node and all(ast.unparse(target) in targets for target in above.targets)
    if isinstance(above, ast.Call):
        return facts.called(above) == {"builtins.len"}
    return isinstance(above, (ast.Attribute, ast.Compare))


def _is_handed_over(facts: Facts, node: ast.AST, to: Collection[Function]) -> bool:
    """Whether a node stands in the call that makes the object, or enters the method which prepares."""
    above = (each for each in facts.tree(node).up(node) if isinstance(each, ast.Call))
    return any(target in to for each in above for target in facts.targets(each))
