"""A method that an object's `__init__` calls to make its models: what it prepares is there for all other methods.

    class Solver:
        def __init__(self, loader):
            self.loader = loader
            self.build_model()

`build_model` prepares the loader under the name that the object has for it, before any other method can run. The raw
one goes on under the names of those who handed it over, and must not be used there any more.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Function
from migrate.programs.home.naming import stays_itself
from migrate.programs.reach.outsiders import units_from
from migrate.programs.reach.self_training import is_itself

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.program import Program

_KEPT = (Role.MODEL, Role.LOADER)


def after_setting_up(facts: Facts, program: Program) -> frozenset[Unit]:
    """The units that run when such an object is set up, with what they call; empty: the home is no such method."""
    home, start = program.home, program.start
    if not isinstance(home, Function) or not isinstance(start, Function) or start.name != "__init__":
        return frozenset()
    callers = facts.callers(home)
    if home.owner is None or home.owner is not start.owner or len(callers) != 1 or callers[0].caller is not start:
        return frozenset()
    named = [each for each in (*program.models, *program.optimizers, *program.loaders) if each.unit is None]
    if not all(
        each.target.startswith("self.") and not _is_set_elsewhere(facts, each.target, start, home) for each in named
    ):
        return frozenset()
    call = callers[0].node
    if facts.tree(call).statement(call) not in start.body:
        return frozenset()
    above = (node for node in facts.own(start) if isinstance(node, ast.Call) and node.lineno < call.lineno)
    early = units_from(facts, *(target for node in above for target in facts.targets(node)))
    methods = [unit for unit in facts.functions if unit.owner is home.owner and unit is not start]
    return frozenset(units_from(facts, *methods) - (early - units_from(facts, home)))


def _is_set_elsewhere(facts: Facts, target: str, *units: Unit) -> bool:
    """Whether another object may come under the name of one that is prepared: `solver.loader = other`."""
    name = target.removeprefix("self.")
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and isinstance(node.ctx, ast.Store)
        and not _is_set_to_itself(facts, node)
        for unit in facts.units
        if unit not in units
        for node in facts.own(unit)
    )


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
    made = min(call.node.lineno for call in facts.callers(home))
    sites = {call.caller: call.node.lineno for call in facts.callers(start)}
    inside = set(_nested(facts, start))
    for unit in facts.units:
        is_maker = unit not in sites and any(facts.singles.is_made_in(unit, origin) for origin in mine)
        if (unit in later and unit not in inside) or is_maker:
            continue
        for node in facts.own(unit):
            if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
                continue
            if not origins(facts.values(node), *_KEPT) & mine or is_itself(facts, node):
                continue
            if _is_handed_over(facts, node, start):
                continue
            if unit is start:
                if node.lineno > made or not _only_looks(facts, node, targets):
                    yield node
            elif node.lineno > sites.get(unit, 0):
                yield node


def _nested(facts: Facts, unit: Unit) -> Iterator[Unit]:
    for inner in facts.nested(unit):
        yield inner
        yield from _nested(facts, inner)


def _only_looks(facts: Facts, node: ast.AST, targets: Collection[str]) -> bool:
    """`self.loader = loader`, `len(loader)`, `loader.dataset`, `loader is None`: nothing is kept of the raw object."""
    above = facts.tree(node).parents[node]
    if isinstance(above, ast.Assign):
        return above.value is node and all(ast.unparse(target) in targets for target in above.targets)
    if isinstance(above, ast.Call):
        return facts.called(above) == {"builtins.len"}
    return isinstance(above, (ast.Attribute, ast.Compare))


def _is_handed_over(facts: Facts, node: ast.AST, start: Function) -> bool:
    """Whether a node stands in the call that makes the object."""
    above = facts.tree(node).up(node)
    return any(isinstance(each, ast.Call) and start in facts.targets(each) for each in above)
