"""Layers that a model gets once it is prepared: its wrapper does not know them, and nobody shares their gradients.

    model.fc = nn.Linear(8, 2)
    setattr(model, name, LoRA(layer))
    parametrize.register_parametrization(model.fc, "weight", LoRA())

Below all training nobody needs them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.models import GIVE_LAYERS, TAKE_LAYERS, WITH_OTHER_LAYERS
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import FUNCTIONS, own_nodes, root_name
from migrate.analysis.units import Function
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.outsiders import entered_beside_models, is_inside_model
from migrate.programs.values.lengths import is_after

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.stages import Stages

_ONE_MORE = frozenset({"append", "extend", "insert"})


def replaced(
    facts: Facts, loops: Loops, program: Program, units: Collection[Unit], stages: Stages
) -> Iterator[Refusal]:
    """The first place where a trained model gets a layer below the call that prepares it, and is trained on."""
    last = _last_training(facts, loops, program)
    for unit in units:
        if is_inside_model(facts, unit):
            continue
        for node in facts.own(unit):
            owner = _owner(facts, program, _changed(facts, node))
            mine = _trained(facts, program, owner)
            if owner is None or not mine or _is_new(facts, unit, mine, stages):
                continue
            if True not in is_after(facts, program, node, stages.of(mine).end):
                continue
            if not last or False in is_after(facts, program, node, last):
                yield Refusal(
                    node,
                    "MIG104",
                    f"{_told(node, ast.unparse(owner))} here, after that was prepared: processes would not share the "
                    "gradients of the new one",
                    "do that before the first training, or make a new model and load the state of the old one",
                )
                return


def _told(node: ast.AST, owner: str) -> str:
    is_more = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ONE_MORE
    return f"{owner} gets one more layer" if is_more else f"a layer of {owner} is replaced"


def gives_layer(facts: Facts, program: Program, statement: ast.stmt, made: Collection[ast.AST]) -> bool:
    """Whether a statement gives some models another layer, itself or in a function of the project."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return False
    inside: list[ast.AST] = [statement, *own_nodes(statement)]
    inside += [node for unit in entered_beside_models(facts, statement) for node in facts.own(unit)]
    changed = (_owner(facts, program, _changed(facts, node)) for node in inside)
    return any(not _trained(facts, program, owner).isdisjoint(made) for owner in changed)


def _is_new(facts: Facts, unit: Unit, made: set[ast.AST], stages: Stages) -> bool:
    """Whether a model is one that the function around makes in this very call, and its callers prepare: `build()`."""
    return unit is not stages.of(made).unit and all(facts.unit(facts.source(each)) is unit for each in made)


def _last_training(facts: Facts, loops: Loops, program: Program) -> int:
    """The last line of the home that trains; 0: it does so elsewhere."""
    assert program.home is not None
    found: list[ast.stmt | ast.expr] = [loop.node for loop in program.training if loop.unit is program.home]
    found += [node for node in facts.own(program.home).of(ast.Call) if loops.trains(node)]
    found += [above for node in found for above in facts.tree(node).loops(node)]
    return max((node.end_lineno or node.lineno for node in found), default=0)


def _changed(facts: Facts, node: ast.AST) -> ast.expr | None:
    """What gets another layer by a statement or a call: a model, a part of one, or an object that is none."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        is_layer = isinstance(target, (ast.Attribute, ast.Subscript)) and _is_layer(facts, node.value)
        return target.value if isinstance(target, (ast.Attribute, ast.Subscript)) and is_layer else None
    if not isinstance(node, ast.Call):
        return None
    called = facts.called(node)
    if called & WITH_OTHER_LAYERS and node.args:
        return node.args[0]
    if called & GIVE_LAYERS and len(node.args) > 1:
        return node.args[0] if _is_layer(facts, node.args[-1]) else None
    if not isinstance(node.func, ast.Attribute):
        return None
    takes = node.func.attr in TAKE_LAYERS and bool(node.args) and _is_layer(facts, node.args[-1])
    return node.func.value if takes or any(_changes_itself(facts, unit) for unit in facts.targets(node)) else None


def _changes_itself(facts: Facts, unit: Unit) -> bool:
    """Whether a method of a model, other than the one that makes it, gives that another layer."""
    if not isinstance(unit, Function) or unit.itself is None or unit.sets_up:
        return False
    changed = (_changed(facts, node) for node in facts.own(unit) if isinstance(node, ast.Assign))
    is_model = is_inside_model(facts, unit)
    return is_model and any(each is not None and root_name(each) == unit.itself.arg for each in changed)


def _is_layer(facts: Facts, given: ast.expr) -> bool:
    made = facts.called(given) if isinstance(given, ast.Call) else set()
    return Role.MODEL in roles(facts.values(given)) or "torch.nn.Parameter" in made


def _owner(facts: Facts, program: Program, node: ast.expr | None) -> ast.expr | None:
    """The model in `model.layers[0]`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)) and not _trained(facts, program, node):
        node = node.value
    return node


def _trained(facts: Facts, program: Program, node: ast.expr | None) -> set[ast.AST]:
    return origins(facts.values(node), Role.MODEL) & program.model_origins if node is not None else set()
