"""Training around the forward of the prepared model: `model.log_prob(x)`, `x @ model.weight.T`, `odeint(model, x, t)`,
by its parts: `head(body(x))` of `body, head = model.body, model.head`, and by a model around it, which was handed the
raw one: `diffusion.losses(x)`.

A wrapper that counts on its own forward does not see such gradients. The program asks for `find_unused_parameters`,
with which the runtime averages after each backward, whatever took part in it (see `irregular.py`).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.operations import LOOKING
from migrate.analysis.known.training import GIVES_ITSELF, THROUGH_WRAPPER
from migrate.analysis.roles import ROWS, Role, origins, roles
from migrate.analysis.syntax import arguments, line_of
from migrate.analysis.units import Class, Function
from migrate.programs.processes.replicas import differs
from migrate.programs.reach.callees import reached
from migrate.programs.reach.outsiders import is_inside_model, units_of
from migrate.programs.reach.self_training import is_itself, steps
from migrate.programs.training.containers import contents, without_forward
from migrate.programs.training.gradients_off import is_decorated_without, without_gradients

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

#: What is made of a model and no part of a loss.
_WITH_MODELS = frozenset({Role.OPTIMIZER, Role.STATE, Role.WRITER, Role.ACCELERATOR})
#: What a model has that gives no part of a loss.
_COMPUTES_NOTHING = THROUGH_WRAPPER | GIVES_ITSELF | {"module", "named_parameters", "state_dict", "load_state_dict"}
#: Methods of a tensor whose result has no gradients.
_CUTTING = frozenset({"item", "detach", "tolist", "numpy"})


def around_forward(facts: Facts, loops: Loops, program: Program) -> tuple[ast.expr, ...]:
    """What a trained model holds, as it is called with a batch while gradients flow, and backward in its own methods.

    So is what runs the model that it is handed, which is the one inside the wrapper. Of a model that the training does
    not run at all also what is read of it: `F.linear(x, model.weight)`. A container that has no forward is never run.
    """
    return program.once(_around_forward, facts, loops)


def _around_forward(facts: Facts, loops: Loops, program: Program) -> tuple[ast.expr, ...]:
    return tuple(_around(facts, loops, program)) if program.models else ()  # else gradients are each process's own


def _around(facts: Facts, loops: Loops, program: Program) -> Iterator[ast.expr]:
    yield from without_forward(facts, sorted(program.model_origins, key=line_of))
    yield from _calls(facts, loops, program)
    for named in program.models:
        yield from _weights(facts, loops, program, named.origins)


def _calls(facts: Facts, loops: Loops, program: Program) -> Iterator[ast.Call]:
    for loop in program.training:
        yield from (call for call in loop.backwards if _trains_itself(facts, program, facts.unit(call)))
    training = {loop.node for loop in program.training}
    # The functions that call backward, and those that they call: there a loss is computed.
    starts = [facts.unit(call) for loop in program.training for call in loop.backwards]
    computing = reached(facts, starts) if differs(facts, loops, program) else set()
    held = set().union(*(contents(facts, model) for model in program.model_origins))
    parts = (held | facts.parts(program.model_origins | held)) - program.model_origins
    for unit in units_of(facts, program):
        is_inside = is_inside_model(facts, unit)
        outside = frozenset() if is_inside else parts
        for call in facts.own(unit):
            if not isinstance(call, ast.Call):
                continue
            is_own = is_inside and isinstance(call.func, ast.Attribute) and is_itself(facts, call.func.value)
            is_around = not is_own and _is_of_trained(facts, program, call.func)
            is_around = is_around or _runs_part(facts, call.func, outside)
            if not is_around and not _runs_handed(facts, program, call):
                continue
            if unit not in computing and not any(_has_rows(facts, argument) for argument in arguments(call)):
                continue
            in_loop = any(loop in training for loop in loops.around(call, unit))
            if in_loop and not _without_gradients(facts, call):
                yield call


def _trains_itself(facts: Facts, program: Program, unit: Unit) -> bool:
    """Whether a method trains the model that it belongs to, as against layers of that which are prepared one by one."""
    if not isinstance(unit, Function) or unit.itself is None or unit not in steps(facts):
        return False
    prepared = {origin for named in program.models for origin in named.origins}
    itself = origins(unit.parameters.get(unit.itself.arg, frozenset()), Role.MODEL)
    return not itself or not itself.isdisjoint(prepared)


def _weights(facts: Facts, loops: Loops, program: Program, made: frozenset[ast.AST]) -> Iterator[ast.Attribute]:
    """Where training loops read what a model holds that is run nowhere in the program's own code."""
    trained = made & program.model_origins
    units = units_of(facts, program)
    nodes = [node for unit in units for node in facts.own(unit) if isinstance(node, (ast.Call, ast.Attribute))]
    if any(isinstance(node, ast.Call) and _comes_to(facts, node, trained) for node in nodes):
        return
    training = {loop.node for loop in program.training}
    for node in nodes:
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load) or node.attr in THROUGH_WRAPPER:
            continue
        above = facts.tree(node).parents[node]
        is_called = isinstance(above, ast.Call) and above.func is node
        if is_called or not origins(facts.values(node.value), Role.MODEL) & trained:
            continue
        if any(loop in training for loop in loops.around(node, facts.unit(node))):
            yield node


def _comes_to(facts: Facts, call: ast.Call, models: set[ast.AST] | frozenset[ast.AST]) -> bool:
    """Whether a call runs a model, or is handed one, which it may run."""
    given = arguments(call)
    return any(origins(facts.values(node), Role.MODEL) & models for node in (call.func, *given))


def _is_of_trained(facts: Facts, program: Program, func: ast.expr) -> bool:
    """Whether a method, or a layer, of a trained model is meant, or a method of a model around it."""
    if not isinstance(func, ast.Attribute) or func.attr in _COMPUTES_NOTHING:
        return False
    models = origins(facts.values(func.value), Role.MODEL)
    return bool(models & program.model_origins) or _is_around(facts, program, func)


def _is_around(facts: Facts, program: Program, func: ast.Attribute) -> bool:
    """Whether a method of a model is meant that was handed a trained one: what a class prepares itself is its own."""
    if Role.MODEL in roles(facts.values(func)):
        return False
    own = program.home.owner if isinstance(program.home, Function) else None
    return any(
        value.role is Role.MODEL
        and value.origin is not None
        and not (own is not None and isinstance(value.unit, Class) and own in value.unit.mro())
        and bool(facts.parts([value.origin]) & program.model_origins)
        for value in facts.values(func.value)
    )


def _runs_part(facts: Facts, func: ast.expr, parts: Collection[ast.AST]) -> bool:
    """Whether a layer of a trained model, or a method of one, is meant by a name of its own."""
    if isinstance(func, ast.Attribute) and func.attr not in _COMPUTES_NOTHING - {"forward"}:
        meant = facts.values(func) | facts.values(func.value)
    else:
        meant = facts.values(func)
    return not origins(meant, Role.MODEL).isdisjoint(parts)


def _has_rows(facts: Facts, argument: ast.expr) -> bool:
    """Whether a batch is handed over, or what holds one."""
    values = facts.values(argument)
    return bool(roles(values) & ROWS) or any(facts.inside(values, role) for role in ROWS)


def _runs_handed(facts: Facts, program: Program, call: ast.Call) -> bool:
    """Whether a library makes something of a trained model by running it, or a function by building it into another."""
    mine = program.model_origins
    if not any(origins(facts.values(given), Role.MODEL) & mine for given in arguments(call)):
        return False
    if entered := facts.targets(call):
        calls = (node for unit in reached(facts, entered) for node in facts.own(unit).of(ast.Call))
        made = (origin for node in calls for origin in origins(facts.values(node), Role.MODEL) - mine)
        return any(facts.parts([origin]) & mine for origin in made)
    names, gives = facts.called(call), roles(facts.values(call))
    is_library = bool(names) and not any(name.startswith(LOOKING) for name in names)
    is_kept = not isinstance(facts.tree(call).parents[call], ast.Expr)
    return is_library and is_kept and not gives & {Role.MODEL, Role.CLASS, *_WITH_MODELS}


def _without_gradients(facts: Facts, call: ast.Call) -> bool:
    """Whether no gradients flow where a method is called, or in the method itself."""
    entered = facts.targets(call)
    if entered and all(is_decorated_without(facts, unit.node) for unit in entered):
        return True
    return without_gradients(facts, call) or _is_cut_off(facts, call)


def _is_cut_off(facts: Facts, call: ast.Call) -> bool:
    """`np.array(model.crf.decode(x))`, `model.score(x).item()`: what is called gives numbers that nothing trains by."""
    above = facts.tree(call).parents[call]
    if isinstance(above, ast.Attribute):
        return above.attr in _CUTTING
    names = facts.called(above) if isinstance(above, ast.Call) and call in above.args else frozenset()
    return bool(names) and all(name.startswith("numpy.") for name in names)
