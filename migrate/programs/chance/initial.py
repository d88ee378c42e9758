"""What draws the weights of a model that is there already: `model.apply(init)`, `nn.init.normal_(model.fc.weight)`.

Every process draws others then, unless all of them are seeded alike.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import FUNCTIONS, arguments, own_nodes, root_name, walk
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Class, Unit

_SETS = "torch.nn.init."
#: What sets weights and draws nothing for that.
_FIXED = tuple(_SETS + name for name in ("calculate_gain", "constant_", "dirac_", "eye_", "ones_", "zeros_"))
#: Methods of a tensor that fill it with what they draw, and that of a layer.
_FILLS = frozenset(
    """bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ trunc_normal_ uniform_
    reset_parameters""".split()
)
_DEEPEST = 4  # calls inside calls


def draws_weights(facts: Facts, statement: ast.stmt, mine: Collection[ast.AST], depth: int = _DEEPEST) -> bool:
    """Whether a statement draws weights of some models, itself or in a function of the project."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return False
    nodes = (statement, *own_nodes(statement))
    return any(isinstance(node, ast.Call) and draws_in(facts, node, mine, depth) for node in nodes)


def draws_in(facts: Facts, call: ast.Call, mine: Collection[ast.AST], depth: int = _DEEPEST) -> bool:
    """Whether a call draws weights of some models: `nn.init.normal_(p)` in a loop over the parameters, too."""
    given = [*arguments(call), *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]
    entered = [unit for unit in facts.targets(call) if not unit.sets_up]
    parts = _names_of_parts(facts, call, mine)
    if any(root_name(node) in parts or _is_part(facts, node, mine) for node in given):
        units = [*entered, *(unit for unit in handed(facts, call) if isinstance(unit, Function))]
        return is_draw(facts, call) or any(draws_inside(facts, unit, depth) for unit in units)
    return depth > 0 and any(draws_weights(facts, each, mine, depth - 1) for unit in entered for each in unit.body)


def is_draw(facts: Facts, call: ast.Call) -> bool:
    """Whether a call draws a weight: `nn.init.normal_(p)`, `p.data.normal_()`, `layer.reset_parameters()`.

    What a method of the project does that is called so, its own code says.
    """
    is_filling = isinstance(call.func, ast.Attribute) and call.func.attr in _FILLS
    return is_init(facts, call) or (is_filling and not facts.targets(call))


def is_init(facts: Facts, call: ast.Call) -> bool:
    """Whether a call is of one of the functions that PyTorch has for drawing weights."""
    return any(name.startswith(_SETS) and not name.startswith(_FIXED) for name in facts.called(call))


def handed(facts: Facts, call: ast.Call) -> set[Unit | Class | None]:
    """What a call is given that is defined in the project, `net.apply(draw)`; None: something else is."""
    return {value.unit for argument in call.args for value in facts.values(argument)}


def draws_inside(facts: Facts, unit: Function, depth: int) -> bool:
    """Whether a function draws weights of what it is given, itself or in what it calls."""
    calls = own_nodes(unit.node).of(ast.Call)
    return any(is_draw(facts, call) and not _is_noise(facts, unit, call) for call in calls) or (
        depth > 0 and any(draws_inside(facts, target, depth - 1) for call in calls for target in facts.targets(call))
    )


def _is_noise(facts: Facts, unit: Function, call: ast.Call) -> bool:
    """Whether a tensor that the function makes is filled, and no weight: `torch.empty_like(x).uniform_(-a, a)`."""
    return isinstance(call.func, ast.Attribute) and _is_made_here(facts, unit, call.func.value, _DEEPEST)


def _is_made_here(facts: Facts, unit: Function, node: ast.expr, depth: int) -> bool:
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr == "data"):
        node = node.value
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda", "cpu", "float", "detach"):
            return _is_made_here(facts, unit, node.func.value, depth)
        names = facts.called(node)
        return bool(names) and all(name.startswith("torch.") and not name.startswith("torch.nn.") for name in names)
    if not isinstance(node, ast.Name) or node.id in unit.parameters or depth == 0:
        return False
    given = [binding.statement for binding in facts.bindings_in(unit) if binding.target == node.id]
    return bool(given) and all(
        isinstance(each, ast.Assign) and _is_made_here(facts, unit, each.value, depth - 1) for each in given
    )


def _names_of_parts(facts: Facts, call: ast.Call, mine: Collection[ast.AST]) -> set[str]:
    """The names that loops around a call give to parts of the models: `for p in model.parameters():`.

    So does a loop over what an outer one has given: `for child in model.children(): for p in child.parameters():`.
    """
    names: set[str] = set()
    for above in reversed([*facts.tree(call).up(call)]):
        for loop in getattr(above, "generators", (above,)):
            if isinstance(loop, (ast.For, ast.comprehension)):
                inside = walk(loop.iter).of(ast.expr)
                if any(root_name(node) in names or _is_part(facts, node, mine) for node in inside):
                    names |= {node.id for node in walk(loop.target).of(ast.Name)}
    return names


def _is_part(facts: Facts, node: ast.expr, mine: Collection[ast.AST]) -> bool:
    """Whether something is one of the models, or lies in one: `net.head[0].weight`."""
    while origins(facts.values(node), Role.MODEL).isdisjoint(mine):
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            return False
        node = node.value
    return True
