"""What is done with a model before it is prepared: where that needs its device, its move must stay.

`ema = copy.deepcopy(model)` copies the model where it is, and `model(torch.zeros(1, 3, device=device))` runs it there.
Moving it in `prepare` would come too late.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import arguments, line_of, own_nodes, root_name
from migrate.analysis.units import Function
from migrate.programs.chance.initial import draws_in, draws_inside, handed, is_init
from migrate.programs.device.examples import runs_example
from migrate.programs.reach.callees import reached
from migrate.programs.values.fillings import shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Call, Unit
    from migrate.programs.conversion import Conversion
    from migrate.programs.program import Program

#: What copies a module, or runs one, with its tensors where they are.
_RUNNERS = ("copy.", "torch.jit.", "torch.optim.swa_utils.")
#: What an average is made of, where that is.
_WEIGHTS = (Role.MODEL, Role.PARAMETERS)
#: What is handed a model and leaves it, and its tensors, as they are.
_HARMLESS = ("builtins.", "torch.", "wandb.", "logging.", "os.", "sys.", "gc.", "weakref.")
_DEEPEST = 4  # calls inside calls


def needs_device(facts: Facts, move: ast.Call, mine: set[ast.AST], program: Program, prepare: ast.stmt) -> bool:
    """Whether a model that `move` places is copied or run before `prepare`, or weights are drawn where it is."""
    assert program.home is not None
    unit = facts.unit(move)
    if _asks_where(facts, unit, move.lineno, prepare.lineno if unit is program.home else None, mine):
        return True
    between = (
        use
        for use in _between(facts, unit, program.home, prepare)
        if (use.unit is not unit or use.node.lineno >= move.lineno) and program.home not in facts.targets(use.node)
    )
    return _some_run(facts, between, mine, program.home)


def is_needed_between(facts: Facts, move: ast.Call, mine: set[ast.AST], made: ast.Call, prepare: ast.stmt) -> bool:
    """The same of a move above the call that makes an object, whose `__init__` comes to `prepare`."""
    unit, home = facts.unit(move), facts.unit(prepare)
    if _asks_where(facts, unit, move.lineno, made.lineno, mine):
        return True
    first, last = line_of(move), made.end_lineno or made.lineno
    above = (use for use in facts.calls if use.unit is unit and first <= line_of(use.node) <= last)
    inside = (use for use in facts.calls if use.unit is home and line_of(use.node) <= (prepare.end_lineno or 0))
    between = (use for use in (*above, *inside) if use.node is not move)
    early = (use for use in between if made not in ast.walk(use.node))  # `Trainer(model).fit()` runs it afterwards
    return _some_run(facts, early, mine, home)


def _some_run(facts: Facts, uses: Iterable[Use], mine: set[ast.AST], home: Unit) -> bool:
    """Whether some calls copy one of the models, run it or draw weights."""
    return any(_runs(facts, use.node, mine, _DEEPEST) or _runs_by_itself(facts, use.node, mine, home) for use in uses)


def _asks_where(facts: Facts, unit: Unit, first: int, last: int | None, mine: set[ast.AST]) -> bool:
    """`next(model.parameters()).device`: whether a unit asks for the device of one of the models between two lines."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "device"
        and first < node.lineno
        and (last is None or node.lineno < last)
        and any(origins(facts.values(whole), *_WEIGHTS) & mine for whole in _with_wholes(node.value))
        for node in facts.own(unit)
    )


def _between(facts: Facts, unit: Unit, home: Unit, prepare: ast.stmt) -> Iterator[Use]:
    end = prepare.end_lineno or prepare.lineno
    for use in facts.calls:
        if (use.unit is home and use.node.lineno <= end) or use.unit is unit is not home:
            yield use


def is_new_there(conversion: Conversion, node: ast.expr, made: set[ast.AST]) -> bool:
    """Whether a function has just made models by a name of its own, and leads to no place where they are prepared."""
    facts, unit, name = conversion.facts, conversion.facts.unit(node), root_name(node)
    if not isinstance(unit, Function) or name in unit.parameter_names or shares(unit, name or ""):
        return False
    places = [facts.source(origin) for origin in made]
    if not any(binding.target == name for binding in facts.bindings_in(unit)):
        return False
    if any(facts.unit(place) is not unit or line_of(place) >= line_of(node) for place in places):
        return False
    return conversion.placement.stages.of(made).unit not in reached(facts, [unit])


def only_before(conversion: Conversion, unit: Unit, made: set[ast.AST], known: dict[Unit, bool] | None = None) -> bool:
    """Whether a function is only called before its models are prepared, and does its work at once.

    `known`: what was found of others that are looked at with it.
    """
    known = {} if known is None else known
    if unit not in known:
        known[unit] = False  # what calls itself is not
        known[unit] = _is_only_before(conversion, unit, made, known)
    return known[unit]


def _is_only_before(conversion: Conversion, unit: Unit, made: set[ast.AST], known: dict[Unit, bool]) -> bool:
    if not isinstance(unit, Function):
        return False
    calls = conversion.facts.callers(unit)
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own_nodes(unit.node)) and not unit.positional:
        return False
    return bool(calls) and all(
        call.handed is None
        and (
            not conversion.is_prepared_at(call.node, made)
            if call.caller is conversion.placement.stages.of(made).unit
            else _is_above(conversion, call, made) or only_before(conversion, call.caller, made, known)
        )
        for call in calls
    )


def _is_above(conversion: Conversion, call: Call, made: set[ast.AST]) -> bool:
    """Whether a call in an `__init__` stands above the only one that enters the method that prepares the models."""
    preparing = conversion.placement.stages.of(made).unit
    entering = conversion.facts.callers(preparing) if isinstance(preparing, Function) else []
    return (
        isinstance(call.caller, Function)
        and call.caller.sets_up
        and [each.caller for each in entering] == [call.caller]
        and line_of(call.node) < line_of(entering[0].node)
        and not any(True for _ in conversion.facts.tree(call.node).loops(call.node))
    )


#: What makes tensors of their own of a model's, where they are.
_COPIES = frozenset({"clone", "detach", "deepcopy", "copy"})


def _runs(facts: Facts, call: ast.Call, mine: set[ast.AST], depth: int) -> bool:
    """Whether a call copies one of the models, runs it or draws weights, itself or in a function of the project."""
    if is_init(facts, call) or draws_in(facts, call, mine, depth):
        return True
    if origins(facts.values(call.func), Role.MODEL) & mine:
        return True
    if isinstance(call.func, ast.Attribute) and call.func.attr in _COPIES:
        return not facts.called(call) or any(origins(facts.values(given), Role.MODEL) & mine for given in call.args)
    given = arguments(call)
    if isinstance(call.func, ast.Attribute):
        given += _with_wholes(call.func.value)
    if Role.AVERAGE in roles(facts.values(call)) and any(origins(facts.values(a), *_WEIGHTS) & mine for a in given):
        return True
    if not any(origins(facts.values(argument), Role.MODEL) & mine for argument in given):
        return _is_handed_weights(facts, call, mine) and _is_entered(facts, call, mine, depth)
    if runs_example(facts, call) or any(name.startswith(_RUNNERS) for name in facts.called(call)):
        return True
    if _is_foreign(facts, call):
        return True
    if any(isinstance(unit, Function) and draws_inside(facts, unit, depth) for unit in handed(facts, call)):
        return True
    return _is_entered(facts, call, mine, depth)


def _is_handed_weights(facts: Facts, call: ast.Call, mine: set[ast.AST]) -> bool:
    """`average.register(name, param.data)`: whether a call is given a tensor of one of the models."""
    wholes = (whole for argument in arguments(call) for whole in _with_wholes(argument))
    return any(origins(facts.values(whole), Role.PARAMETERS) & mine for whole in wholes)


def _is_entered(facts: Facts, call: ast.Call, mine: set[ast.AST], depth: int) -> bool:
    """Whether a function of the project that a call comes to copies one of the models, runs it or draws weights."""
    return depth > 0 and any(_enters(facts, target, mine, depth - 1) for target in facts.targets(call))


def _runs_by_itself(facts: Facts, call: ast.Call, mine: set[ast.AST], home: Unit) -> bool:
    """`show()`, `self.show()`: whether what a call enters runs one of the models though it is handed none."""
    entered = reached(facts, facts.targets(call))
    return home not in entered and any(
        isinstance(inner, ast.Call) and origins(facts.values(inner.func), Role.MODEL) & mine
        for unit in entered
        for inner in facts.own(unit)
    )


def _is_foreign(facts: Facts, call: ast.Call) -> bool:
    """`ModelEma(model)`: whether a call is of a library of which nothing is known; it may copy or run the model."""
    names = facts.called(call)
    if not names or facts.targets(call) or not roles(facts.values(call)) <= {Role.UNKNOWN}:
        return False
    return all("." in name and not name.startswith(_HARMLESS) for name in names)


def _with_wholes(node: ast.expr) -> list[ast.expr]:
    """`net.head[0]`, `net.head` and `net`."""
    found = [node]
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
        found.append(node)
    return found


def _enters(facts: Facts, unit: Function, mine: set[ast.AST], depth: int) -> bool:
    return any(isinstance(node, ast.Call) and _runs(facts, node, mine, depth) for node in own_nodes(unit.node))
