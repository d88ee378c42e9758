"""What holds an object that the home is given and prepares: prepare changes the names of the home, and nothing else.

`fit(net, ...)` prepares its own `net`. An object that was made with the model before, a global name, another attribute
go on with the raw one, and must not be asked for it while the prepared one is trained.
"""

from __future__ import annotations

import ast
from itertools import islice
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import COMPREHENSIONS, arguments, defaults_of, writes
from migrate.analysis.units import Function, Module, is_local
from migrate.programs.home.reading import order, read_before
from migrate.programs.home.set_up import after_setting_up, raw_reads
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.outsiders import is_inside_model, units_inside

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import Loops

_KEPT = (Role.MODEL, Role.LOADER)


def kept_given(facts: Facts, loops: Loops, program: Program, units: Collection[Unit]) -> Iterator[Refusal]:
    """The raw object read by code that the home reaches, and loops beside it that train the raw one."""
    yield from _before(facts, program)
    yield from _by_default(facts, program)
    yield from _trained_raw(facts, loops, program)
    if program.home is program.start or program.hands_up:
        return
    later = after_setting_up(facts, program)
    inside = units_inside(facts, program) | later
    if later:
        yield from (
            _refusal(node, f"{ast.unparse(node)} is read here as it was before prepare")
            for node in islice(raw_reads(facts, program, later), 1)
        )
    for loop in program.training:
        if loop.unit not in inside:
            yield _refusal(loop.node, "this loop trains the model outside of where it is prepared")
            return
    given = [named for named in (*program.models, *program.loaders) if named.is_given and named.module is None]
    for unit in sorted((unit for unit in inside if unit in units), key=order):
        for node in facts.own(unit):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
                mine = origins(facts.values(node), *_KEPT)
                named = next((each for each in given if each.origins & mine), None)
                if named is not None and _is_raw(facts, program, unit, node, named):
                    yield _refusal(node, f"{ast.unparse(node)} is the {named.role.value} as it was before prepare")
                    return


def _trained_raw(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """The raw model called by code that trains, where the home was given it and keeps the prepared one for itself."""
    assert program.home is not None
    mine = {o for o in program.model_origins if not facts.singles.is_made_in(program.home, o)}
    if program.home is not program.start or not mine or not any(named.unit for named in program.loaders):
        return
    for loop in program.training:
        units = [unit for unit in loops.updates.functions(loop.node) if not is_inside_model(facts, unit)]
        for node in (n for root in (loop.node, *(unit.node for unit in units)) for n in ast.walk(root)):
            if isinstance(node, ast.Call) and origins(facts.values(node.func), Role.MODEL) & mine:
                if not _is_of_object(facts, node.func, 6):
                    yield _refusal(node, f"{ast.unparse(node.func)} is the model as it was before prepare")
                    return


def _is_of_object(facts: Facts, node: ast.expr, depth: int) -> bool:
    """Whether a model comes from an object of the program: an attribute, or a name or parameter that is given one."""
    if isinstance(node, ast.Attribute):
        return any(value.role is Role.INSTANCE for value in facts.values(node.value))
    unit = facts.unit(node)
    if not isinstance(node, ast.Name) or not isinstance(unit, Function) or depth == 0:
        return False
    given = [b.statement for b in facts.bindings_in(unit) if b.target == node.id]
    if given:
        values = [getattr(statement, "value", None) for statement in given]
        return all(isinstance(value, ast.expr) and _is_of_object(facts, value, depth - 1) for value in values)
    mine = origins(facts.values(node), Role.MODEL)
    calls = [call.node for call in facts.callers(unit)] if node.id in unit.parameter_names else []
    passed = [a for call in calls for a in arguments(call)]
    passed = [a for a in passed if origins(facts.values(a), Role.MODEL) & mine]
    return bool(passed) and all(_is_of_object(facts, each, depth - 1) for each in passed)


def _before(facts: Facts, program: Program) -> Iterator[Refusal]:
    """The raw object read by its name in a module where the home, which prepares it, does not come first."""
    assert program.home is not None
    for node in islice(read_before(facts, program.home, units_inside(facts, program), program.loaders), 1):
        yield Refusal(
            node,
            "MIG104",
            f"{ast.unparse(node)} is read here as it was before prepare",
            "make the loader in the function that trains, or hand it over to there",
        )


def _by_default(facts: Facts, program: Program) -> Iterator[Refusal]:
    """`def train(loader=make_loader())`: made, or read, when the function is defined."""
    assert program.home is not None
    mine = program.training_loaders.union(*(named.origins for named in program.loaders if named.module is not None))
    above = set().union(*(named.origins for named in program.loaders if named.statements))  # of a def at home
    for unit in sorted(facts.functions, key=order):
        kept = mine - above if unit.node in facts.own(program.home) else mine
        for default in (d for d in defaults_of(unit.node) if origins(facts.values(d), Role.LOADER) & kept):
            yield Refusal(
                default,
                "MIG104",
                f"{ast.unparse(default)} is read here as it was before prepare: with the definition, for its default",
                "make the loader in the function that trains, or hand it over to there",
            )
            return


def _refusal(node: ast.AST, why: str) -> Refusal:
    return Refusal(node, "MIG104", why, "make the model, the optimizer and the loader in one function and pass them on")


def _is_raw(facts: Facts, program: Program, unit: Unit, node: ast.Name | ast.Attribute, named: Named) -> bool:
    """Whether a node reads the object from where it was before the home prepared it."""
    text = ast.unparse(node)
    if text == named.target and (unit is program.home or "." in text):
        return False
    if isinstance(node, ast.Name):
        return not is_local(unit, node.id) and not _is_of_comprehension(facts, node)
    inside = units_inside(facts, program)
    owners = [value for value in facts.values(node.value) if value.role is Role.INSTANCE and value.origin is not None]
    if node.attr == named.target.rpartition(".")[2] and all(owner.origin in named.holders for owner in owners):
        return False
    return any(isinstance(made := facts.unit(o.origin), Module) or made not in inside for o in owners if o.origin)


def _is_of_comprehension(facts: Facts, name: ast.Name) -> bool:
    """`net` in `[net(x) for net in (self.G, self.D)]`."""
    around = (above for above in facts.tree(name).up(name) if isinstance(above, COMPREHENSIONS))
    return any(name.id in writes(part.target) for above in around for part in above.generators)
