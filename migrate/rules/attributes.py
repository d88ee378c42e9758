"""model-attributes: what is asked of a prepared model itself is asked of the model inside.

    model.state_dict()             ->   accelerator.unwrap_model(model).state_dict()
    model.decode(z)                ->   accelerator.unwrap_model(model).decode(z)
    writer.add_graph(model, x)     ->   writer.add_graph(accelerator.unwrap_model(model), x)

On several processes the prepared model is a wrapper without these attributes. Left as they are: calls, train(), eval(),
zero_grad(), parameters(), which mean the same on both.
Refused: methods that compute a loss for training around the wrapper's forward, since gradients would not be shared.
Safe: on one process unwrap_model gives the same object.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.training import DATA_PARALLEL, DISTRIBUTED_DATA_PARALLEL, NO_GRAD, THROUGH_WRAPPER
from migrate.analysis.roles import ROWS, Role, origins, roles
from migrate.rules.placing import dropped
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.units import Function
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

#: Functions that look at an object without running or keeping it.
_LOOKING = frozenset({"builtins.print", "builtins.isinstance", "builtins.hasattr", "builtins.type", "builtins.id"})


@rule("MIG119", "model-attributes")
def model_attributes(conversion: Conversion, draft: Draft) -> None:
    """Unwrap the model for its own attributes and for other people's functions."""
    for node in _attributes(conversion):
        accelerator = conversion.access.name(node)
        draft.wrap(node.value, f"{accelerator}.unwrap_model({{it}})")
    for given in (*_handed_out(conversion), *_looked_into(conversion)):
        draft.wrap(given, f"{conversion.access.name(given)}.unwrap_model({{it}})")


def _attributes(conversion: Conversion) -> Iterator[ast.Attribute]:
    facts = conversion.facts
    gone = {id(inner) for call in dropped(conversion) for inner in ast.walk(call.func)}
    for module in conversion.modules:
        for node in facts.tree(module.tree).nodes:
            if not isinstance(node, ast.Attribute) or node.attr in (*THROUGH_WRAPPER, "module") or id(node) in gone:
                continue
            if _is_prepared_model(conversion, node.value):
                yield node


def _is_prepared_model(conversion: Conversion, node: ast.expr) -> bool:
    facts = conversion.facts
    if not isinstance(node, (ast.Name, ast.Attribute)) or facts.unit(node) not in conversion.units:
        return False
    if isinstance(node, ast.Attribute) and node.attr == "module":
        return False  # the inside of a DataParallel: MIG110 unwraps it
    values = facts.values(node)
    mine = origins(values, Role.MODEL) & conversion.program.model_origins
    return bool(mine) and roles(values) <= {Role.MODEL, Role.TENSOR} and conversion.is_prepared_at(node)


def _handed_out(conversion: Conversion) -> Iterator[ast.expr]:
    """Trained models given to library functions after prepare."""
    facts = conversion.facts
    keep = _LOOKING | DATA_PARALLEL | DISTRIBUTED_DATA_PARALLEL
    for use in conversion.uses:
        if facts.targets(use.node) or use.node in dropped(conversion):
            continue
        names = facts.called(use.node)
        if names & keep or any(value.role is Role.CLASS for value in facts.values(use.node.func)):
            continue
        if not names and Role.WRITER not in roles(facts.receiver(use.node)):
            continue
        for argument in use.node.args:
            if _is_prepared_model(conversion, argument):
                yield argument


def _looked_into(conversion: Conversion) -> Iterator[ast.expr]:
    """Trained models given to functions of files that were not named, which ask the model itself for something."""
    facts = conversion.facts
    for use in conversion.uses:
        for unit in facts.targets(use.node):
            if unit.module.file.named:
                continue
            bound = int(bool(unit.positional) and unit.owner is not None)
            for argument, parameter in zip(use.node.args, unit.positional[bound:], strict=False):
                if _is_prepared_model(conversion, argument) and _asks_model(unit, parameter.arg):
                    yield argument


def _asks_model(unit: Function, name: str) -> bool:
    """Whether a function reads attributes of a parameter that a wrapper does not have, and does not call it."""
    nodes = list(ast.walk(unit.node))
    asked = any(
        isinstance(n, ast.Attribute)
        and isinstance(n.value, ast.Name)
        and n.value.id == name
        and n.attr not in THROUGH_WRAPPER
        for n in nodes
    )
    called = any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == name for n in nodes)
    return asked and not called


def trains_around_wrapper(conversion: Conversion) -> Iterator[ast.Call]:
    """Method calls on a trained model that take a batch while gradients flow."""
    facts = conversion.facts
    training = {loop.node for loop in conversion.program.training}
    for node in _attributes(conversion):
        call = facts.tree(node).parents[node]
        if not isinstance(call, ast.Call) or call.func is not node:
            continue
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        if not any(roles(facts.values(argument)) & ROWS for argument in given):
            continue
        in_loop = any(loop in training for loop in conversion.loops.around(call, facts.unit(call)))
        if in_loop and not _without_gradients(conversion, call):
            yield call


def _without_gradients(conversion: Conversion, node: ast.AST) -> bool:
    for above in conversion.facts.tree(node).up(node):
        for item in getattr(above, "items", ()) if isinstance(above, ast.With) else ():
            if isinstance(item.context_expr, ast.Call) and conversion.facts.called(item.context_expr) & NO_GRAD:
                return True
    return False
