"""What a training goes by that is drawn once in a run, and that prepare gives nobody:

    head = AdaptiveHead(classes)                       centers = torch.randn(10, 64)
    optimizer = SGD(model.parameters(), lr=0.1)        loss = mse_loss(model(x), centers[y])

    self.frequencies = torch.randn(2, 128)             # in a layer, neither a parameter nor a buffer

The weights of a model that is prepared are those of the main process everywhere. A model that nobody trains, a tensor
that belongs to none and an attribute of a layer are another thing on each process, unless all of them are seeded alike.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import line_of, walk
from migrate.programs.chance.draws import Draws
from migrate.programs.reach.built import layers_of
from migrate.programs.reach.callees import reached
from migrate.programs.reach.outsiders import is_inside_model
from migrate.programs.training.loss_parts import LossParts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Class
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

#: By these words a call is told that it loads weights.
_LOADED = frozenset({"pretrained", "weights"})


def lasting(facts: Facts, loops: Loops, program: Program) -> dict[ast.Call, str]:
    """The calls that draw such things, with the library whose seed decides."""
    draws, behind = Draws(facts, program), _behind_losses(facts, program)
    found = dict.fromkeys(_untrained(facts, draws, program, behind), "torch")
    found |= {call: _library(facts, call) for call in _drawn_above(facts, loops, draws, program, behind)}
    return found | {call: _library(facts, call) for call in _kept_in_layers(facts, draws, program)}


def _behind_losses(facts: Facts, program: Program) -> list[ast.Call]:
    parts = (LossParts(facts, loop, program.model_origins).each() for loop in program.training)
    return [node for each in parts for node in each if isinstance(node, ast.Call)]


def _untrained(facts: Facts, draws: Draws, program: Program, behind: Collection[ast.Call]) -> Iterator[ast.Call]:
    """The calls that make models which losses are computed by, and which nobody trains or gives weights from a file."""
    called = (origins(facts.values(call.func), Role.MODEL) for call in behind)
    made = {origin for each in called for origin in each if isinstance(origin, ast.Call)}
    made -= program.model_origins | facts.parts(program.model_origins)
    made = {call for call in made if not is_inside_model(facts, facts.unit(call)) and draws.draws_weights(call)}
    loaded = _loaded(facts) if made else set()
    yield from sorted((call for call in made if call not in loaded and not _is_told_to_load(call)), key=line_of)


def _loaded(facts: Facts) -> set[ast.AST]:
    """Where the models were made that are given a state later on: a teacher's, or that of the model itself."""
    giving = facts.method_calls("load_state_dict")
    given = {origin for use in giving for origin in origins(facts.receiver(use.node), Role.MODEL)}
    return given | facts.parts(given)


def _is_told_to_load(call: ast.Call) -> bool:
    given = (keyword.value for keyword in call.keywords if keyword.arg in _LOADED)
    return any(not isinstance(value, ast.Constant) or bool(value.value) for value in given)


def _drawn_above(
    facts: Facts, loops: Loops, draws: Draws, program: Program, behind: Collection[ast.Call]
) -> Iterator[ast.Call]:
    """What losses are computed from that is drawn outside of the loops that train."""
    training = {loop.node for loop in program.training}
    drawn = [call for call in behind if draws.draws(call)]
    if not drawn:
        return
    inside = (call for loop in training for call in walk(loop).of(ast.Call))
    units = reached(facts, {unit for call in inside for unit in facts.targets(call)})
    for call in drawn:
        unit = facts.unit(call)
        if unit not in units and not is_inside_model(facts, unit) and training.isdisjoint(loops.around(call, unit)):
            yield call


def _kept_in_layers(facts: Facts, draws: Draws, program: Program) -> Iterator[ast.Call]:
    """What the layers that a program may make draw when they are made, and keep as plain attributes."""
    found = [call for call in facts.once(_Attributes).drawn if facts.module(call) in draws.modules]
    yield from (
        c for c in layers_of(facts, program, draws.modules, found) if isinstance(c, ast.Call) and draws.draws(c)
    )


class _Attributes:
    """The calls that may draw, of which constructors of layers keep what they give, and other methods read it."""

    def __init__(self, facts: Facts) -> None:
        classes = {unit.owner for unit in facts.functions if unit.name == "forward" and unit.owner is not None}
        layers = [cls for cls in classes if Role.MODEL in facts.roles_of_bases(cls)]
        calls = [call for cls in layers for call in _kept(facts, cls)]
        self.drawn = sorted(calls, key=lambda call: (facts.file(call).path, line_of(call)))


def _kept(facts: Facts, cls: Class) -> Iterator[ast.Call]:
    methods = [node for node in cls.node.body if isinstance(node, ast.FunctionDef)]
    read = {
        node.attr
        for method in methods
        if method.name != "__init__"
        for node in walk(method).of(ast.Attribute)
        if isinstance(node.ctx, ast.Load)
    }
    makers = (method for method in methods if method.name == "__init__")
    for statement in (node for maker in makers for node in walk(maker).of(ast.Assign)):
        target = statement.targets[0]
        if isinstance(target, ast.Attribute) and target.attr in read:
            yield from _plainly_given(facts, statement.value)


def _plainly_given(facts: Facts, node: ast.expr) -> Iterator[ast.Call]:
    """The calls in a value that is a tensor or a number: not those in what makes a layer or a parameter."""
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Call):
            names = facts.called(part)
            if facts.targets(part) or any(name.startswith("torch.nn.") for name in names):
                continue
            yield part
        waiting += ast.iter_child_nodes(part)


def _library(facts: Facts, call: ast.Call) -> str:
    names = facts.called(call)
    return next((each for each in ("random", "numpy") if any(known.draws_from(each, n) for n in names)), "torch")
