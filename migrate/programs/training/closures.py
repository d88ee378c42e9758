"""Closures that an optimizer is given: `optimizer.step(closure)`.

Most optimizers call it once and go on. LBFGS calls it as often as the loss and the gradients ask for: gradients are the
same on all processes, and so must be the loss that the closure returns.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import arguments, is_none
from migrate.analysis.units import Class, Function
from migrate.programs.program import Refusal
from migrate.programs.values.numbers import is_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

#: Of PyTorch's optimizers only this one looks at what the closure returns.
_DECIDING = "torch.optim.LBFGS"
_TORCH = "torch.optim."


def returned_losses(facts: Facts, program: Program) -> tuple[ast.expr, ...]:
    """What closures return to optimizers that decide by it."""
    found: dict[ast.expr, None] = {}
    for call, closure in _given(facts, program):
        if _decides(facts, call):
            for unit in _functions(facts, closure):
                found.update(dict.fromkeys(_returned(facts, unit)))
    return tuple(found)


def closures(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Closures that cannot be told to return the same loss on all processes."""
    for call, closure in _given(facts, program):
        if not _decides(facts, call):
            continue
        units = _functions(facts, closure)
        returned = [value for unit in units for value in _returned(facts, unit)]
        losses = {text for unit in units for text in _backward(facts, unit)}
        why = ""
        if not units or not returned:
            why = "a closure that is not seen"
        elif any(isinstance(unit.node, ast.Lambda) for unit in units):
            why = "a lambda"
        elif any(_is_no_tensor(facts, value) for value in returned if ast.unparse(value) not in losses):
            why = "a closure that returns no tensor"
        if why:
            yield Refusal(
                call,
                "MIG122",
                f"the optimizer decides by the loss, and is given {why}: processes would part ways",
                "give it a function, defined in the named files, that returns the loss as a tensor",
            )


def unanswered(facts: Facts, program: Program, package: str) -> Iterator[Refusal]:
    """Accelerate's optimizer gives nothing back: a loss that is taken from a step would be None."""
    for call, _ in _given(facts, program) if package == "accelerate" else ():
        if not isinstance(facts.tree(call).parents[call], ast.Expr):
            yield Refusal(
                call,
                "MIG122",
                "the loss is taken from optimizer.step(closure), which gives nothing back with Accelerate",
                "keep the loss in a variable of its own inside of the closure, or use --target runtime",
            )


def _given(facts: Facts, program: Program) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The steps of the program's optimizers that are given a closure."""
    if not program.models:
        return  # no process waits for another: each does the whole by itself
    mine = {origin for named in program.optimizers for origin in named.origins}
    modules = {loop.unit.module for loop in program.training}
    for use in facts.method_calls("step"):
        made = origins(facts.receiver(use.node), Role.OPTIMIZER)
        if not made or use.unit.module not in modules or (mine and not made & mine):
            continue
        given = arguments(use.node)
        if given and not is_none(given[0]):
            yield use.node, given[0]


def _decides(facts: Facts, call: ast.Call) -> bool:
    """Whether an optimizer looks at the loss; one that is not PyTorch's own may."""
    for origin in origins(facts.receiver(call), Role.OPTIMIZER):
        names = facts.called(origin) if isinstance(origin, ast.Call) else set()
        if _DECIDING in names or not any(name.startswith(_TORCH) for name in names):
            if not any(_only_calls(unit) for unit in facts.targets(call)):
                return True
    return False


def _only_calls(unit: Function) -> bool:
    """Whether a project's own `step` calls its closure and does nothing with the loss but giving it back."""
    if not isinstance(unit.owner, Class):
        return False
    parameters = {name for name in unit.parameter_names if name != "self"}
    losses: set[str] = set()
    for node in ast.walk(unit.node):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            if node.value.func.id in parameters:
                losses |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    returned = {id(node.value) for node in ast.walk(unit.node) if isinstance(node, ast.Return)}
    return not any(
        isinstance(node, ast.Name) and node.id in losses and isinstance(node.ctx, ast.Load) and id(node) not in returned
        for node in ast.walk(unit.node)
    )


def _functions(facts: Facts, closure: ast.expr) -> list[Function]:
    return [value.unit for value in facts.values(closure) if isinstance(value.unit, Function)]


def _is_no_tensor(facts: Facts, value: ast.expr) -> bool:
    return is_number(facts, value) is True or isinstance(value, ast.Tuple)


def _backward(facts: Facts, unit: Function) -> Iterator[str]:
    """What a closure computes gradients of is a tensor, also where it began as a number: `total = 0.0`."""
    for node in facts.own(unit):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward":
            yield ast.unparse(node.func.value)


def _returned(facts: Facts, unit: Function) -> Iterator[ast.expr]:
    if isinstance(unit.node, ast.Lambda):
        yield unit.node.body
        return
    for node in facts.own(unit):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value
