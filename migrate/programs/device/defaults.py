"""Programs whose tensors are made on the GPU by default: `torch.set_default_tensor_type("torch.cuda.FloatTensor")`.

The statement stays. The GPU is that of the process once the accelerator is made, so nothing may be made in between; and
where the program only sets it under a condition, it is kept on the CPU otherwise.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS, arguments, is_main_guard, line_of
from migrate.analysis.units import Module
from migrate.programs.device.tensor_types import types_of
from migrate.programs.device.the_cpu import only_cpu
from migrate.programs.program import Refusal
from migrate.programs.values.conditions import flag, negated

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.prepare.placement import Placement
    from migrate.programs.program import Program

_SETTERS = ("torch.set_default_tensor_type", "torch.set_default_device")
_WAY_OUT = "set it in one place, above the training, or make tensors with device=... where they are needed"
#: Calls of torch that make nothing on a GPU.
_HARMLESS = tuple(
    f"torch.{name}"
    for name in """cuda. backends. device manual_seed seed initial_seed set_ get_ is_ version. distributed.
    autograd.set_ multiprocessing.set_ utils.data.""".split()
)


@dataclass(frozen=True, slots=True)
class Default:
    """A call after which tensors are made on the GPU, and the condition under which it is made; None: always."""

    call: ast.Call
    unit: Unit
    test: ast.expr | None


def defaults(facts: Facts, program: Program) -> list[Default]:
    """The calls that make tensors of a program be made on the GPU."""
    mine = facts.reach.back(loop.unit.module for loop in program.training)
    found: list[Default] = []
    for use in facts.calls_to(_SETTERS):
        given = _given(use.node)
        if use.unit.module in mine and given is not None and _is_gpu(facts, given):
            tests = [*_tests(facts, use.node), *_chosen(facts, given)]
            test = None if not tests else tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
            found.append(Default(use.node, use.unit, test))
    return found


def _given(call: ast.Call) -> ast.expr | None:
    return next(iter(arguments(call)), None)


def _is_gpu(facts: Facts, given: ast.expr) -> bool:
    """Whether a default may be a GPU: all but what is known to be on the CPU."""
    if kinds := types_of(facts, given):
        return any(kind[1] for kind in kinds)
    return not only_cpu(facts, given)


def _tests(facts: Facts, node: ast.AST) -> Iterator[ast.expr]:
    """What holds where a statement is run, outermost first."""
    found: list[ast.expr] = []
    below = node
    for above in facts.tree(node).up(node):
        if isinstance(above, FUNCTIONS):
            break
        if isinstance(above, ast.If) and not is_main_guard(above):
            found.append(above.test if any(below is s for s in above.body) else negated(above.test))
        below = above
    yield from reversed(found)


def _chosen(facts: Facts, given: ast.expr) -> Iterator[ast.expr]:
    """The condition inside of what is given: `torch.cuda.FloatTensor if cuda else torch.FloatTensor`."""
    if isinstance(given, ast.IfExp) and not (_is_gpu(facts, given.body) and _is_gpu(facts, given.orelse)):
        yield given.test if _is_gpu(facts, given.body) else negated(given.test)


def hidden_defaults(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Defaults that cannot stay: several of them, or conditions that cannot be asked where the accelerator is made."""
    found = defaults(facts, program)
    if program.home is None or program.start is None:
        return
    if len({ast.unparse(each.test) if each.test is not None else "" for each in found}) > 1:
        why = f"tensors are made on the GPU by default under several conditions (also line {found[0].call.lineno})"
        yield Refusal(found[1].call, "MIG120", why, _WAY_OUT)
    for each in found[:1]:
        given = _given(each.call)
        assert given is not None
        if not (types_of(facts, given) or facts.is_device(facts.values(given))):
            why = f"where tensors are made by default is not known: {ast.unparse(given)}"
            yield Refusal(each.call, "MIG120", why, _WAY_OUT)
        elif _names_one(given):
            why = f"tensors are made on one GPU by default, for all processes: {ast.unparse(given)}"
            yield Refusal(each.call, "MIG120", why, "write `cuda`, which is each process's own GPU")
        elif not _can_be_asked(facts, program, each):
            why = "tensors are made on the GPU by default under a condition that is not known where the model is made"
            yield Refusal(each.call, "MIG120", why, _WAY_OUT)


def _names_one(given: ast.expr) -> bool:
    texts = (n.value for n in ast.walk(given) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    return any(text.startswith("cuda:") for text in texts)


def _can_be_asked(facts: Facts, program: Program, default: Default) -> bool:
    """Whether the condition means the same where the accelerator is made."""
    assert program.start is not None
    if default.test is None or default.unit is program.start:
        return True
    if "torch" not in program.start.module.names:
        return False
    is_global = isinstance(default.unit, Module) and default.unit is program.start.module
    return is_global or flag(facts, default.test) is None


def cpu_without_default(facts: Facts, program: Program) -> ast.expr | None:
    """The condition under which a program that sets a default is on the CPU; None: it does not say."""
    found = defaults(facts, program)
    return negated(found[0].test) if found and found[0].test is not None else None


# --- order ----------------------------------------------------------------------------------------------------------


def made_before(facts: Facts, program: Program, placement: Placement) -> Iterator[Refusal]:
    """What is made on the GPU by default before the accelerator gives each process its own."""
    assert program.start is not None
    for default in defaults(facts, program):
        spot = placement.accelerator.statement
        between = _between(facts, _way(facts, default.unit, default.call), _way(facts, program.start, spot))
        if between is None:
            why = "tensors are made on the GPU by default, and whether the accelerator is made before them is not seen"
            yield Refusal(default.call, "MIG120", why, _WAY_OUT)
            continue
        made = next((node for node in between if _makes(facts, node, set())), None)
        if made is not None:
            why = f"{ast.unparse(made)} is on the GPU by default, before the accelerator gives each process its own"
            yield Refusal(made, "MIG120", why, "set the default below this, or make this below")


_Way = list[tuple["Unit", ast.AST]]


def _way(facts: Facts, unit: Unit, node: ast.AST) -> _Way:
    """A node, the call that leads to its function, the call that leads to that one, as far as there is only one."""
    found: _Way = [(unit, node)]
    while not isinstance(unit, Module) and len(callers := facts.callers(unit)) == 1 and len(found) < 9:
        unit, node = callers[0].caller, callers[0].node
        found.append((unit, node))
    return found


def _between(facts: Facts, first: _Way, last: _Way) -> list[ast.Call] | None:
    """The calls between two places, the later one last; None: which is first is not seen."""
    for i, (unit, node) in enumerate(first):
        j = next((j for j, (other, _) in enumerate(last) if other is unit), None)
        if j is None:
            continue
        start, end = line_of(node), line_of(last[j][1])
        if start > end:
            return []
        found = _calls(facts, unit, start, end)
        for other, below in first[:i]:
            found += _calls(facts, other, line_of(below), None)
        for other, below in last[:j]:
            found += _calls(facts, other, 0, line_of(below))
        return found
    return None


def _calls(facts: Facts, unit: Unit, start: int, end: int | None) -> list[ast.Call]:
    calls = (node for node in facts.own(unit) if isinstance(node, ast.Call))
    return [call for call in calls if start < call.lineno and (end is None or call.lineno < end)]


def _makes(facts: Facts, call: ast.Call, seen: set[Unit]) -> bool:
    """Whether a call may make a tensor, by what is called in it, too."""
    if any(name.startswith("torch.") and not name.startswith(_HARMLESS) for name in facts.called(call)):
        return True
    return any(_makes_inside(facts, unit, seen) for unit in facts.targets(call))


def _makes_inside(facts: Facts, unit: Unit, seen: set[Unit]) -> bool:
    if unit in seen:
        return False
    seen.add(unit)
    inner: Iterable[ast.AST] = facts.own(unit)
    return any(isinstance(node, ast.Call) and _makes(facts, node, seen) for node in inner)
