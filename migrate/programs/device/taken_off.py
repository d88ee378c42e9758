"""Trained models that a program takes to the CPU, and runs there.

    model.cpu()                     ->   model = accelerator.unwrap_model(model)
    show(model(inputs))                  model.cpu()
                                         show(model(inputs))

On several processes the wrapper goes on bringing what its model is given to the GPU, so its name is given the model
inside. The batches of prepared loaders are on the accelerator's device, too: where only these come to the model below,
it stays there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import line_of
from migrate.analysis.units import Function
from migrate.programs.device.devices import is_move, is_to_cpu
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.callees import reached, upwards
from migrate.programs.reach.outsiders import is_inside_model
from migrate.programs.reach.repeats import may_follow
from migrate.programs.values.sources import before_modes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops


@dataclass(frozen=True, slots=True)
class TakenOff:
    """What becomes of the calls that take a trained model to the CPU; others are left as they are."""

    dropped: tuple[ast.Call, ...] = ()  # only batches of prepared loaders come to it below
    unwrapped: tuple[ast.Call, ...] = ()  # none of these does
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class _Runs:
    """Where a model is run, once it was taken to the CPU."""

    own: list[ast.Call]  # on other things than batches of prepared loaders
    fed: list[ast.Call]
    strays: list[ast.AST]  # batches that are taken from a prepared loader one by one

    @property
    def is_mixed(self) -> bool:
        """Whether tensors of the CPU and batches on the device come to it, or that is not seen."""
        return bool(self.own and (self.fed or self.strays))


def taken_off(
    facts: Facts, loops: Loops, program: Program, prepared: Collection[ast.AST], units: Collection[Unit]
) -> TakenOff:
    """The moves of trained models to the CPU in the units of a program; `prepared`: where its loaders were made."""
    dropped, unwrapped, refusals = [], [], []
    for use in (*facts.method_calls("cpu"), *facts.method_calls("to")):
        if use.unit not in units or not _is_trained(facts, program, use.node) or not is_to_cpu(facts, use.node):
            continue
        if not _is_whole(facts, use.node) or not may_follow(facts, loops, use.node):
            continue
        runs = _runs(facts, loops, program, use, prepared)
        if runs is None or not (runs.own or runs.fed):
            continue
        if not runs.own:
            dropped.append(use.node)
        elif runs.is_mixed or not _can_be_named_anew(facts, use, runs):
            refusals.append(_refusal(facts, use.node, runs))
        else:
            unwrapped.append(use.node)
    return TakenOff(tuple(dropped), tuple(unwrapped), tuple(refusals))


def _is_trained(facts: Facts, program: Program, call: ast.Call) -> bool:
    """Whether a method is called on a name of a trained model."""
    receiver = facts.receiver(call)
    return (
        isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, (ast.Name, ast.Attribute))
        and roles(receiver) == {Role.MODEL}
        and bool(origins(receiver, Role.MODEL) & program.model_origins)
        and not is_inside_model(facts, facts.unit(call))
    )


def _is_whole(facts: Facts, call: ast.Call) -> bool:
    """Whether a call is all that its statement says, as in `model = model.cpu().eval()`."""
    statement = facts.tree(call).statement(call)
    if isinstance(statement, ast.Assign):
        return before_modes(statement.value) is call and len(statement.targets) == 1
    return isinstance(statement, ast.Expr) and before_modes(statement.value) is call


def _runs(facts: Facts, loops: Loops, program: Program, use: Use, prepared: Collection[ast.AST]) -> _Runs | None:
    """Where the model is run below a move; None where it is moved back, or that is not seen."""
    mine = origins(facts.receiver(use.node), Role.MODEL) & program.model_origins
    below = _with_reached(facts, list(_below(facts, use.node)))
    calls = [node for node in below if isinstance(node, ast.Call)]
    if any(is_move(facts, call) and origins(facts.receiver(call), Role.MODEL) & mine for call in calls):
        return None
    running = [call for call in calls if _is_run(facts, call, mine)]
    fed = [call for call in running if _is_fed(facts, loops, call, prepared)]
    strays = [node for node in below if _takes_batches(facts, node, prepared)]
    return _Runs([call for call in running if call not in fed], fed, strays)


def _below(facts: Facts, node: ast.AST) -> Iterator[ast.AST]:
    """What may run after a node: below it, in a loop with it, and below the calls of its function."""
    for each in upwards(facts, node):
        tree = facts.tree(each)
        around = set(tree.loops(each))
        statement = tree.statement(each)
        end = statement.end_lineno or statement.lineno
        for inner in facts.own(facts.unit(each)):
            is_around = around and not around.isdisjoint(tree.loops(inner))
            if (is_around and tree.in_block(inner, [statement]) is None) or line_of(inner) > end:
                yield inner


def _with_reached(facts: Facts, nodes: list[ast.AST]) -> list[ast.AST]:
    """Some nodes, and those of the functions that their calls lead to."""
    units = reached(facts, (target for node in nodes if isinstance(node, ast.Call) for target in facts.targets(node)))
    return [*nodes, *(node for unit in units for node in facts.own(unit))]


def _is_run(facts: Facts, call: ast.Call, mine: Collection[ast.AST]) -> bool:
    """Whether a call runs one of some models."""
    called = origins(facts.values(call.func), Role.MODEL) & set(mine)
    return bool(called) and not is_inside_model(facts, facts.unit(call))


def _is_fed(facts: Facts, loops: Loops, call: ast.Call, prepared: Collection[ast.AST]) -> bool:
    """Whether a call stands in a loop over a prepared loader, or is reached from one."""
    around = loops.around(call, facts.unit(call))
    return any(_is_over(facts, loop.iter, prepared) for loop in around if isinstance(loop, ast.For))


def _takes_batches(facts: Facts, node: ast.AST, prepared: Collection[ast.AST]) -> bool:
    """`next(iter(loader))`, `[f(x) for x in loader]`."""
    if isinstance(node, ast.comprehension):
        return _is_over(facts, node.iter, prepared)
    if not isinstance(node, ast.Call) or not node.args or "builtins.next" not in facts.called(node):
        return False
    return _is_over(facts, node.args[0], prepared)


def _is_over(facts: Facts, iterable: ast.expr, prepared: Collection[ast.AST]) -> bool:
    return not facts.loaders(facts.values(iterable)).isdisjoint(prepared)


def _can_be_named_anew(facts: Facts, use: Use, runs: _Runs) -> bool:
    """Whether all that runs the model below has it from the name on which the move is called."""
    assert isinstance(use.node.func, ast.Attribute)
    name = use.node.func.value
    if not isinstance(name, ast.Name) or not isinstance(use.unit, Function):
        return True
    bound = {*use.unit.parameter_names, *(binding.target for binding in facts.bindings_in(use.unit))}
    inside = reached(facts, [use.unit])
    return name.id in bound and all(facts.unit(call) in inside for call in runs.own)


def _refusal(facts: Facts, call: ast.Call, runs: _Runs) -> Refusal:
    """A model that is met by tensors of the CPU and by batches, or that other code goes on using by another name."""
    assert isinstance(call.func, ast.Attribute)
    name = ast.unparse(call.func.value)
    first = runs.own[0]
    where = f"{facts.file(first).path}:{line_of(first)}"
    if runs.is_mixed:
        other = (*runs.fed, *runs.strays)[0]
        why = f"{name} is taken to the CPU here and run there ({where}), also over batches of a prepared loader"
        why += f" (line {line_of(other)} of {facts.file(other).path}), which are on the accelerator's device"
    else:
        why = f"{name} is taken to the CPU here, and run there by another function ({where}), which has its wrapper"
    return Refusal(call, "MIG102", why, "take this move out, and move what the model is given to its device instead")
