"""Gradients that a program sets itself, from `torch.autograd.grad`: no backward call gives them, nobody averages them.

gradients = torch.autograd.grad(loss, parameters)
for parameter, gradient in zip(parameters, gradients):
    parameter.grad = gradient
optimizer.step()
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_none, walk
from migrate.programs.program import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

_GRADIENTS = frozenset({"torch.autograd.grad"})


def set_gradients(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """The first gradient that a training sets to, or uses as, what each process has computed alone."""
    yield from _hooked(facts, program)
    for loop in program.training:
        units = loops.updates.functions(loop.node)
        nodes = [*walk(loop.node), *(node for unit in units for node in facts.own(unit))]
        if not any(isinstance(node, ast.Call) and facts.called(node) & _GRADIENTS for node in nodes):
            continue
        for node in nodes:
            if isinstance(node, ast.Assign) and _sets_new(facts, node):
                yield Refusal(
                    node,
                    "MIG105",
                    f"{ast.unparse(node.targets[0])} is set to what torch.autograd.grad gives: processes would not "
                    "share it",
                    "let loss.backward() give it, or convert by hand, with accelerator.reduce(gradient, 'mean')",
                )
                return


def _hooked(facts: Facts, program: Program) -> Iterator[Refusal]:
    """`parameter.register_post_accumulate_grad_hook(step)`: an optimizer that steps inside of backward."""
    modules = {loop.unit.module for loop in program.training}
    for use in facts.method_calls("register_post_accumulate_grad_hook"):
        if use.unit.module in modules:
            yield Refusal(
                use.node,
                "MIG105",
                "this hook is called inside of backward, before the processes have averaged the gradient",
                "step the optimizer behind loss.backward(), or convert by hand",
            )
            return


def _sets_new(facts: Facts, statement: ast.Assign) -> bool:
    """`p.grad = gradient`; not `p.grad = None`, nor what is made of gradients that are there: `p.grad = p.grad / 2`."""
    if not any(isinstance(target, ast.Attribute) and target.attr == "grad" for target in statement.targets):
        return False
    calls = [node for node in walk(statement.value) if isinstance(node, ast.Call)]
    functions = {id(call.func) for call in calls}  # torch.autograd.grad
    read = (n for n in walk(statement.value) if isinstance(n, ast.Attribute) and id(n) not in functions)
    is_zero = any(name.startswith("torch.zeros") for call in calls for name in facts.called(call))
    return not is_none(statement.value) and not is_zero and all(node.attr != "grad" for node in read)
