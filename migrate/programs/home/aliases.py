"""Several names for one model in a unit: the one that the program trains by is the one to prepare."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import DATA_PARALLEL
from migrate.analysis.known.training import GIVES_ITSELF
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import arguments, root_name, walk
from migrate.analysis.units import Function, Module
from migrate.programs.training.gradients_off import without_gradients
from migrate.programs.values.sources import passed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.analysis.units import Unit

_GIVES_ITSELF = GIVES_ITSELF | {"to", "cuda", "cpu"}


def other_names(
    facts: Facts, unit: Unit, by_target: Mapping[str, list[tuple[Binding, set[ast.AST]]]]
) -> frozenset[str]:
    """`net` of `net = ssd_net`, `net = model.train()`, `net = DataParallel(model)`, `net = inject(model)`, where the
    program goes on to train by that name alone.
    """
    optimizers = [b.statement.lineno for b in facts.bindings_in(unit) if origins(b.values, Role.OPTIMIZER)]
    found: set[str] = set()
    for target, bindings in by_target.items():
        other = _first_name(facts, getattr(bindings[0][0].statement, "value", None))
        if other not in by_target or bindings[0][1] != by_target[other][0][1]:
            continue
        is_early = bool(optimizers) and max(b.statement.lineno for b, _ in bindings) < max(optimizers)
        if is_early and _is_trained_by(facts, unit, target, other, bindings[0][1]):
            found.add(target)
    return frozenset(found)


def _first_name(facts: Facts, made: ast.AST | None) -> str:
    """`model` of `model`, `model.train()`, `model.to(device)` and `DataParallel(model)`; empty: what is made is no
    object that has a name.
    """
    while isinstance(made, ast.Call):
        if made.args and facts.called(made) & DATA_PARALLEL:
            made = made.args[0]
        elif isinstance(made.func, ast.Attribute) and made.func.attr in _GIVES_ITSELF:
            made = made.func.value
        else:
            return _given_back(facts, made)
    return ast.unparse(made) if isinstance(made, (ast.Name, ast.Attribute)) else ""


def _given_back(facts: Facts, call: ast.Call) -> str:
    """`model` of `inject(model, rank=4)`, a function of the project that gives back the model which it is handed."""
    made = origins(facts.values(call), Role.MODEL)
    alike = [each for each in arguments(call) if made and origins(facts.values(each), Role.MODEL) == made]
    is_one = len(alike) == 1 and isinstance(alike[0], (ast.Name, ast.Attribute)) and bool(facts.targets(call))
    return ast.unparse(alike[0]) if is_one else ""


def _is_trained_by(facts: Facts, unit: Unit, target: str, other: str, models: set[ast.AST]) -> bool:
    """Whether the forward passes that gradients flow from go by one of two names, and none by the other."""
    if names := trained_by(facts, unit, models):
        return names == {target}
    return _is_run(facts, unit, target) and not _is_run(facts, unit, other)


def trained_by(facts: Facts, unit: Unit, models: set[ast.AST]) -> frozenset[str]:
    """The names of a unit by which the forward passes go that gradients flow from; none: that is not known."""
    passes = [
        use
        for use in facts.calls
        if origins(facts.values(use.node.func), Role.MODEL) & models and not without_gradients(facts, use.node)
    ]
    led = [_names_of(facts, unit, use.node.func, use.unit, frozenset()) for use in passes]
    return frozenset().union(*led) if all(led) else frozenset()


def _names_of(facts: Facts, home: Unit, node: ast.expr, unit: Unit, seen: frozenset[Unit]) -> frozenset[str]:
    """The names at home that a name elsewhere stands for, by way of the calls; none: that is not known."""
    if unit is home or _is_of_one_object(home, unit, node):
        return frozenset({ast.unparse(node)})
    if not isinstance(unit, Function) or not isinstance(node, ast.Name) or unit in seen:
        return frozenset()
    if node.id not in unit.parameter_names or node.id in {binding.target for binding in facts.bindings_in(unit)}:
        return frozenset()
    found: set[str] = set()
    for call in facts.callers(unit):
        argument = passed(call, unit, node.id)
        names = _names_of(facts, home, argument, call.caller, seen | {unit}) if argument is not None else frozenset()
        if not names:
            return frozenset()
        found |= names
    return frozenset(found)


def _is_of_one_object(home: Unit, unit: Unit, node: ast.expr) -> bool:
    """Whether `self.model` in a method is what another method of the class calls so."""
    if not isinstance(home, Function) or not isinstance(unit, Function) or unit.owner is None:
        return False
    if unit.owner is not home.owner or unit.itself is None or home.itself is None:
        return False
    return isinstance(node, ast.Attribute) and unit.itself.arg == home.itself.arg == root_name(node)


def is_aside(facts: Facts, unit: Unit, bindings: Sequence[tuple[Binding, set[ast.AST]]]) -> bool:
    """`model_to_save = model.module if hasattr(model, "module") else model`, of a model that the unit does not make.

    So it is where the model is not run by that name, or, in a loop, by its other one as well.
    """
    own = {binding.target for binding in facts.bindings_in(unit)}
    target, others = bindings[0][0].target, set[str]()
    if not target.isidentifier():
        return False  # what an object keeps it goes on with
    for binding, made in bindings:
        read = (n for n in walk(binding.statement) if isinstance(n, (ast.Name, ast.Attribute)))
        found = {ast.unparse(n) for n in read if origins(facts.values(n), Role.MODEL) == made} - own
        if not found:
            return False
        others |= found
    if not _is_run(facts, unit, target):
        return True
    in_loops = all(any(facts.tree(binding.statement).loops(binding.statement)) for binding, _ in bindings)
    return in_loops and any(_is_run(facts, unit, other) for other in others)


def _is_run(facts: Facts, unit: Unit, target: str) -> bool:
    """Whether a unit, or a function of a module, calls what has a name, or hands it to a function of the project."""
    nodes = facts.tree_of(unit).nodes if isinstance(unit, Module) else facts.own(unit)
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        given = arguments(node)
        if ast.unparse(node.func) == target:
            return True
        if any(ast.unparse(each) == target for each in given) and facts.targets(node):
            return True
    return False


def is_any_of_a_list(facts: Facts, statement: ast.stmt, found: set[ast.AST]) -> bool:
    """`net = nets[i]` in a loop: a name for one after the other of the objects that a list has at its positions."""
    if len(found) < 2 or next(facts.tree(statement).loops(statement), None) is None:
        return False
    by_key = [{holder: key for holder, key in facts.singles.holders(origin) if key.isdigit()} for origin in found]
    together = set.intersection(*map(set, by_key))
    return any(len({keys[holder] for keys in by_key}) == len(found) for holder in together)
