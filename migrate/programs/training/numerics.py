"""What is refused for the numbers that a program computes with."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import SYNCHRONIZING
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import arguments
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.starters import is_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops

_LIKE_ANY = ("apex.normalization.", "apex.optimizers.Fused", "apex.mlp.", "apex.contrib.")
_PRECISION = ("apex.amp.", "apex.fp16_utils.")
IN_HALF = "the parameters of the model are in float16, and so are what steps and averages do with them"
WAY_OUT = "leave the parameters in float32 and start the converted script with --mixed_precision fp16"
_HALF = frozenset({"torch.float16", "torch.half"})


def numerics(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """What is left of apex, and models whose parameters are in float16."""
    is_told = any(refusal.code == "MIG106" for refusal in program.refusals)
    modules = {loop.unit.module for loop in program.training} | {program.module}
    for module in modules:
        for node in () if is_told else facts.tree(module.tree).nodes:
            if isinstance(node, ast.Call):
                names = sorted(filter(_is_apex, facts.called(node) - SYNCHRONIZING))
                yield from (_unknown(node, name) for name in names[:1])
    for call in _halved(facts, program):
        if not is_option(facts, call):
            yield Refusal(call, "MIG106", IN_HALF, WAY_OUT)


def _unknown(call: ast.Call, name: str) -> Refusal:
    if name.startswith(_PRECISION):
        way_out = "take apex out and start the converted script with --mixed_precision fp16"
        return Refusal(call, "MIG106", "the program uses apex", way_out)
    why = f"{name}() is not known here: what it does with gradients and steps is not seen"
    return Refusal(call, "MIG106", why, "use an optimizer of torch.optim, or one that derives from its Optimizer")


def halved_by_choice(facts: Facts, program: Program) -> list[ast.Call]:
    """`if args.half: model.half()`: who chooses that has its rounding on several processes as on one."""
    return [call for call in _halved(facts, program) if is_option(facts, call)]


def _halved(facts: Facts, program: Program) -> Iterator[ast.Call]:
    modules = {loop.unit.module for loop in program.training} | {program.module}
    for use in facts.method_calls("half", "to"):
        if use.unit.module in modules and _halves(facts, use.node, program) and not _is_over(facts, program, use.node):
            yield use.node


def _is_apex(name: str) -> bool:
    """Whether a function of apex does more than compute: its layers and optimizers are like those of any library."""
    return name.startswith("apex.") and not name.startswith(_LIKE_ANY)


def _halves(facts: Facts, call: ast.Call, program: Program) -> bool:
    if not origins(facts.receiver(call), Role.MODEL) & program.model_origins:
        return False
    given = arguments(call)
    is_half = isinstance(call.func, ast.Attribute) and call.func.attr == "half"
    return is_half or any(facts.names(argument) & _HALF for argument in given)


def _is_over(facts: Facts, program: Program, call: ast.Call) -> bool:
    """Whether training is over when the model is made smaller, to be saved or shown."""
    unit = facts.unit(call)
    return any(unit is loop.unit and call.lineno > (loop.node.end_lineno or 0) for loop in program.training)
