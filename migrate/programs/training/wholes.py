"""The models that a program trains: where an optimizer is given a part of one, the model that is called.

`optimizer = SGD(net.fc.parameters())` trains a layer; what runs, and what prepare takes, is `net`. The layers that are
not trained are frozen, or their gradients are of no use to anybody: to average them does no harm.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.entrances import entered_from
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import argument_at, is_main_guard, walk
from migrate.analysis.units import Function, Module
from migrate.programs.reach.outsiders import is_inside_model
from migrate.programs.reach.unmade import made
from migrate.programs.training.containers import contents
from migrate.programs.training.gradients_off import without_gradients

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops

_PARAMETERS = frozenset({"parameters", "named_parameters"})


def trained(facts: Facts, loops: Loops, training: tuple[LoopFact, ...], optimizers: set[ast.AST]) -> set[ast.AST]:
    """Where the models were made that optimizers train."""
    models = made(facts, set[ast.AST]().union(*(facts.models_of.get(origin, set()) for origin in optimizers)))
    models -= set(_tried_out(facts, models, training))
    calls = list(_run(facts, loops, training))
    run = set().union(*calls)
    models = _opened(facts, models, run)
    if len(optimizers) != 1:
        return _together(facts, training, models, calls, optimizers) or models
    models = models or around(facts, next(iter(optimizers)))
    wholes: set[ast.AST] = set()
    for model in models - run:
        owners = {owner for owner in run if model in facts.parts([owner]) | contents(facts, owner)}
        if len(owners) > 1 and not any(owners <= called for called in calls):  # else one of them is called there
            return models
        # Of others only methods are called: `agent.act(x)`.
        wholes |= owners or _owners_in_sight(facts, next(iter(optimizers)), model) or {model}
    return (models & run) | wholes


def _together(
    facts: Facts,
    training: tuple[LoopFact, ...],
    models: set[ast.AST],
    calls: list[set[ast.AST]],
    optimizers: set[ast.AST],
) -> set[ast.AST]:
    """The model that is run, and holds all that several optimizers train of one loss; empty if there is none.

    `model = WithLoss(encoder, decoder)` with an optimizer for each of these. Of several losses each may leave out some.
    Where one of several is run, `policy = Actor() if kind == "actor" else Critic()`, each has optimizers of its own.
    """
    run = set[ast.AST]().union(*calls)
    if len(training) != 1 or len(training[0].backwards) != 1 or not models or models & run:
        return set()
    owners = {owner for owner in run if facts.parts([owner]) & models}
    if not any(owners <= called for called in calls):  # made in one branch or the other
        return set()
    held = [facts.parts([owner]) for owner in owners]
    each = [facts.models_of.get(origin, set()) for origin in optimizers]
    has_own = all(mine and sum(mine <= parts for parts in held) == 1 for mine in each)
    return owners if has_own or all(models <= parts for parts in held) else set()


def _opened(facts: Facts, models: set[ast.AST], run: set[ast.AST]) -> set[ast.AST]:
    """Models with those that lie in a container in its place, if it is not run itself, and each of them is."""
    inner = {model: contents(facts, model) for model in models - run}
    opened = {model for model, held in inner.items() if held and held <= run}
    return (models - opened).union(*(inner[model] for model in opened))


def _tried_out(facts: Facts, models: set[ast.AST], training: tuple[LoopFact, ...]) -> Iterator[ast.AST]:
    """Models that a file makes under its main guard, to try its classes out: in other programs they are not there."""
    guarded = [m for m in models if isinstance(facts.unit(m), Module) and any(map(is_main_guard, facts.tree(m).up(m)))]
    if guarded:
        entered = set[Module]().union(*(entered_from(facts, loop.unit) for loop in training))
        yield from (model for model in guarded if facts.module(model) not in entered)


def _run(facts: Facts, loops: Loops, training: tuple[LoopFact, ...]) -> Iterator[set[ast.AST]]:
    """Where the models were made that each call in the steps of a program may run, other than to look at the result."""
    for loop in training:
        units = [unit for unit in loops.updates.functions(loop.node) if not is_inside_model(facts, unit)]
        for root in (loop.node, *(unit.node for unit in units)):
            for node in walk(root):
                if isinstance(node, ast.Call) and not without_gradients(facts, node):
                    yield origins(facts.values(what_runs(node)), Role.MODEL)


def what_runs(call: ast.Call) -> ast.expr:
    """What a call runs if that is a model: `net(x)`, `net.forward(x)`."""
    is_named = isinstance(call.func, ast.Attribute) and call.func.attr == "forward"
    return call.func.value if is_named and isinstance(call.func, ast.Attribute) else call.func


def around(facts: Facts, optimizer: ast.AST) -> set[ast.AST]:
    """The models whose parts an optimizer is given in plain sight: `net[1].parameters()`; empty if not all are seen."""
    found: set[ast.AST] = set()
    for named in _listed(optimizer):
        inner = named
        while isinstance(inner, (ast.Attribute, ast.Subscript)) and not origins(facts.values(inner), Role.MODEL):
            inner = inner.value
        owners = origins(facts.values(inner), Role.MODEL)
        if not owners:
            return set()
        found |= owners
    return found


def held_by(facts: Facts, parts: set[ast.AST], optimizers: set[ast.AST]) -> set[ast.AST]:
    """The one model that has a name beside the optimizers and holds all of these; they themselves if there is none.

    `Adam(gan.generator.parameters())` and `Adam(gan.discriminator.parameters())` train `gan`, whose methods are called.
    """
    named = {
        origin
        for unit in (facts.units_naming(optimizers) if parts else ())
        for binding in facts.bindings_in(unit)
        for origin in origins(binding.values, Role.MODEL)
    }
    holding = {model for model in named - parts if parts <= facts.parts([model])}
    return holding if len(holding) == 1 else parts


def _owners_in_sight(facts: Facts, optimizer: ast.AST, part: ast.AST) -> set[ast.AST]:
    """The model that an optimizer names to get at a part of it, `self.policy.actor.parameters()`; empty if not one."""
    found: set[ast.AST] = set()
    for named in _listed(optimizer):
        if part in origins(facts.values(named), Role.MODEL) and isinstance(named, (ast.Attribute, ast.Subscript)):
            owners = origins(facts.values(named.value), Role.MODEL)
            if len(owners) != 1 or any(part not in facts.parts([owner]) for owner in owners):
                return set()
            found |= owners
    return found if len(found) == 1 and not _is_itself(facts, optimizer, found) else set()


def _is_itself(facts: Facts, node: ast.AST, models: set[ast.AST]) -> bool:
    """Whether code is that of a method of a model: there it is `self`."""
    unit = facts.unit(node)
    if not isinstance(unit, Function) or (itself := unit.itself) is None:
        return False
    return bool(origins(unit.parameters.get(itself.arg, frozenset()), Role.MODEL) & models)


def _listed(optimizer: ast.AST) -> Iterator[ast.expr]:
    """What an optimizer is given the parameters of, as it is written: `net[1]` of `net[1].parameters()`."""
    given = argument_at(optimizer, 0, "params") if isinstance(optimizer, ast.Call) else None
    for node in ast.walk(given) if given is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PARAMETERS:
            yield node.func.value
