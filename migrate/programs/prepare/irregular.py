"""Programs whose gradients do not come in one backward for each forward: two losses, penalties, layers that are frozen,
results that no loss uses, layers that some steps leave out, losses that methods of the model compute.

PyTorch's DistributedDataParallel averages gradients while the first backward after a forward runs, and counts on every
parameter to take part. A second backward through the same graph, or a parameter that is frozen or released later, is
missed. Such a program asks for `find_unused_parameters`, with which the runtime averages after each backward.
"""

from __future__ import annotations

import ast
import itertools
from itertools import pairwise
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, origins, roles
from migrate.analysis.syntax import FUNCTIONS, writes
from migrate.programs.argument import HANDLERS, Argument
from migrate.programs.prepare.bypass import around_forward
from migrate.programs.prepare.chosen_layers import chosen_layers
from migrate.programs.prepare.discarded import discarded
from migrate.programs.prepare.drawn_parts import drawn_parts
from migrate.programs.program import Refusal
from migrate.programs.reach.outsiders import is_inside_model, units_of
from migrate.programs.stages import first_made
from migrate.programs.values.lengths import is_after

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

_HANDLER = "DistributedDataParallelKwargs"


def averages_after_backward(facts: Facts, loops: Loops, program: Program) -> Iterator[Argument]:
    """The handler that an irregular program asks for."""
    if irregular(facts, loops, program) is not None or any(around_forward(facts, loops, program)):
        yield Argument(HANDLERS, f"{_HANDLER}(find_unused_parameters=True)", imports=(_HANDLER,))


def out_of_step(facts: Facts, loops: Loops, program: Program, package: str) -> Iterator[Refusal]:
    """With Accelerate, DistributedDataParallel itself averages, and would miss gradients."""
    if package != "accelerate":
        return
    for around in around_forward(facts, loops, program):
        what = f"{ast.unparse(around.func)}()" if isinstance(around, ast.Call) else ast.unparse(around)
        yield Refusal(
            around,
            "MIG119",
            f"{what} trains the model around its forward: processes would not share gradients",
            "call the model itself, and let its forward choose what to do, or use --target runtime",
        )
    if (node := irregular(facts, loops, program)) is not None:
        yield Refusal(
            node,
            "MIG105",
            f"`{ast.unparse(node)}` makes gradients that DistributedDataParallel does not average",
            "add the losses up and call backward once for each forward, freeze layers before the model is prepared, or "
            "use --target runtime",
        )


def irregular(facts: Facts, loops: Loops, program: Program) -> ast.AST | None:
    """The first place that makes gradients out of step; None if there is none, or no gradients are shared."""
    if not program.models:
        return None
    for loop in program.training:
        for call in loop.backwards:
            if len(loop.backwards) > 1 and any(
                k.arg == "retain_graph" and not _is_false(k.value) for k in call.keywords
            ):
                return call
        for unit in {facts.unit(call) for call in loop.backwards}:
            calls = sorted((c for c in loop.backwards if facts.unit(c) is unit), key=lambda c: (c.lineno, c.col_offset))
            for first, second in pairwise(calls):
                if not _are_alternatives(facts, first, second) and not _is_run_between(facts, unit, first, second):
                    return second
    left_out = (each(facts, loops, program) for each in (discarded, chosen_layers, drawn_parts))
    return next(itertools.chain.from_iterable(left_out), None) or _frozen_later(facts, loops, program)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


def _are_alternatives(facts: Facts, one: ast.AST, other: ast.AST) -> bool:
    """Whether two calls stand on different sides of one `if`."""
    tree = facts.tree(one)
    for above in tree.up(one):
        if isinstance(above, FUNCTIONS):
            return False
        if isinstance(above, ast.If):
            sides = [tree.in_block(node, block) is not None for node in (one, other) for block in _sides(above)]
            if sides in ([True, False, False, True], [False, True, True, False]):
                return True
    return False


def _sides(node: ast.If) -> list[list[ast.stmt]]:
    return [node.body, node.orelse]


def _is_run_between(facts: Facts, unit: Unit, first: ast.Call, second: ast.Call) -> bool:
    """Whether a model runs forward between two backward calls of a unit, and no gradient is differentiated again."""
    between = [
        node
        for node in facts.own(unit)
        if isinstance(node, ast.Call) and (first.end_lineno or 0) < node.lineno <= second.lineno and node is not second
    ]
    if any("torch.autograd.grad" in facts.called(node) for node in between):
        return False
    return any(Role.MODEL in roles(facts.values(node.func)) or facts.targets(node) for node in between)


def _frozen_later(facts: Facts, loops: Loops, program: Program) -> ast.AST | None:
    """A place where parameters are frozen or released once the model is prepared."""
    if program.home is None:
        return None
    end = first_made(facts, loops, program)
    for unit in units_of(facts, program):
        for node in facts.own(unit):
            if sets_requires_grad(facts, node) and True in is_after(facts, program, node, end):
                return node
    return None


def sets_requires_grad(facts: Facts, node: ast.AST) -> bool:
    """Whether parameters of a model are frozen or released."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]
        owner = target.value if isinstance(target, ast.Attribute) and target.attr == "requires_grad" else None
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        owner = node.func.value
    else:
        return False
    return owner is not None and not origins(facts.values(owner), *FROM_LOADER) and _is_part(facts, node, owner)


def _is_part(facts: Facts, node: ast.AST, owner: ast.expr) -> bool:
    """Whether it is a model, or a parameter of one, that requires gradients: no tensor that was just computed."""
    if roles(facts.values(owner)) & {Role.MODEL, Role.PARAMETERS} or _is_layer(facts, node, owner):
        return True
    loops = (loop for loop in facts.tree(node).loops(node) if isinstance(loop, ast.For))
    iterated = [loop.iter for loop in loops if isinstance(owner, ast.Name) and owner.id in writes(loop.target)]
    return any("parameters" in ast.unparse(each) for each in iterated)


def _is_layer(facts: Facts, node: ast.AST, owner: ast.expr) -> bool:
    """`model[0]`, `model.fc.weight`, where the model's class does not say what that is."""
    while isinstance(owner, (ast.Attribute, ast.Subscript)):
        owner = owner.value
        if roles(facts.values(owner)) == {Role.MODEL}:
            return not is_inside_model(facts, facts.unit(node))
    return False
