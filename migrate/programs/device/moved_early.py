"""What is moved to a GPU before there is an accelerator: every process would put it on the first one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, only, origins, roles
from migrate.analysis.syntax import FUNCTIONS, is_main_guard
from migrate.programs.chance.draws import Draws
from migrate.programs.device.before import put_on
from migrate.programs.device.numbered import RANKS
from migrate.programs.processes.one_seed import drawn_before
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.callees import entered, reached
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.prepare.placement import Placement


def too_early(facts: Facts, program: Program, placement: Placement) -> Iterator[Refusal]:
    """What must not happen before there is an accelerator: draws that all must share, moves to a GPU."""
    yield from drawn_before(facts, program, placement)
    yield from _moved(facts, program, placement)


def _moved(facts: Facts, program: Program, placement: Placement) -> Iterator[Refusal]:
    """`weights = torch.ones(3).cuda()` while files are loaded, where the accelerator is made in a function."""
    draws = Draws(facts, program)
    calls = list(draws.calls_before(placement.accelerator))
    for module in draws.modules - {program.module, *([program.start.module] if program.start is not None else [])}:
        calls += [node for node in facts.own(module) if isinstance(node, ast.Call)]
    for call in dict.fromkeys(calls):
        if _is_to_gpu(facts, call) and _stays(facts, program, call):
            yield Refusal(
                call,
                "MIG101",
                f"{ast.unparse(call)} moves to a GPU before there is an accelerator, which gives each process its own",
                "move it below the choice of the device, in the function that trains or in one that is called there",
            )
            return


def moves_below(facts: Facts, program: Program, statement: ast.stmt) -> bool:
    """Whether functions that a statement enters move something to a GPU, where it stays: `Net()` makes its own mask."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return False  # what it calls is entered where it is called
    units = reached(facts, entered(facts, statement))
    calls = (node for unit in units for node in facts.own(unit) if isinstance(node, ast.Call))
    return any(_is_put_on_gpu(facts, call) and _stays(facts, program, call) for call in calls)


def _is_put_on_gpu(facts: Facts, call: ast.Call) -> bool:
    return _is_to_gpu(facts, call) or any(facts.is_device(facts.values(device)) for device in put_on(call))


def _is_to_gpu(facts: Facts, call: ast.Call) -> bool:
    """`x.cuda()`, `x.to("cuda")`, `x.to(args.gpu)`: to a GPU by name, or by a number that is no rank."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("to", "cuda"):
        return False
    first = call.args[0] if call.args else None
    if first is None or call.func.attr == "cuda":
        return call.func.attr == "cuda" and (first is None or not roles(facts.values(first)) & RANKS)
    is_named = isinstance(first, ast.Constant) and str(first.value).startswith("cuda")
    return is_named or only(facts.values(first), Role.NUMBER) or _is_number(facts.once(Sources).option(first))


def _is_number(option: ast.Call | None) -> bool:
    """`--gpu` of `type=int`."""
    return option is not None and any(k.arg == "type" and ast.unparse(k.value) == "int" for k in option.keywords)


def _stays(facts: Facts, program: Program, call: ast.Call) -> bool:
    """Whether it is moved there for the training, and not brought to the accelerator's device by prepare."""
    receiver = facts.receiver(call)
    if origins(receiver, Role.MODEL) & program.model_origins or roles(receiver) == {Role.CRITERION}:
        return False
    return not any(map(is_main_guard, facts.tree(call).up(call))) or facts.module(call) is program.module
