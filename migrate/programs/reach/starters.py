"""Who starts the training: the program's own processes or threads, or a search that chooses its settings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from migrate.analysis.known import callers
from migrate.analysis.known.distributed import LAUNCHERS
from migrate.analysis.roles import PLACE, Role, origins, roles
from migrate.analysis.syntax import gives_up
from migrate.analysis.units import Call, Function
from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops

#: What starts a process, as its library says it.
_PROCESS = "multiprocessing.Process", "multiprocessing.get_context().Process"


def started(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """A program that a library runs several times: beside itself, or with settings that it chooses."""
    modules = {loop.unit.module for loop in program.training}
    for call in _calls(facts, program):
        by = call.handed.by if call.handed is not None else ""
        if by in LAUNCHERS and call.caller.module in modules:
            continue  # told already, wherever it stands in such a file
        tree = facts.tree(call.node)
        if by in callers.BESIDE and not any(is_users_choice(facts, above) for above in tree.up(call.node)):
            yield Refusal(call.node, "MIG111", *_beside(facts, call))
        elif by in callers.CHOOSING:
            why = f"{by}() chooses the settings of the training, other ones on each process"
            yield Refusal(
                call.node, "MIG111", why, "train with settings that all processes know, then run migrate again"
            )


def _beside(facts: Facts, call: Call) -> tuple[str, str]:
    """Why training that runs beside the program is left, and the way out."""
    assert call.handed is not None
    shared = [facts.receiver(use.node) for use in facts.method_calls("share_memory", "share_memory_")]
    models = set[ast.AST]().union(*(origins(values, Role.MODEL) for values in shared))
    given = (node for node in call.handed.args if node is not None)
    if any(origins(facts.values(node), Role.MODEL) & models for node in given):
        why = f"processes that {call.handed.by}() starts train one model in shared memory, each at its own pace"
        return (
            why,
            "train it in one process, over all of the data, then run migrate again: processes then step together",
        )
    why = f"the program starts its own processes or threads: {call.handed.by}() runs the training"
    return why, "call the training directly, then run migrate again"


def watched(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """A process of the program's own that is handed a model that is trained: an evaluation beside it, a player.

    What it sees in shared memory is the model before prepare, which may move it; and each process would start one.
    """
    training = {call.node for call in _calls(facts, program)}
    for call in (call for unit in facts.functions for call in facts.callers(unit) if call.node not in training):
        handed = call.handed
        if handed is None or not handed.by.endswith(_PROCESS):
            continue
        given = [node for node in (*handed.args, *(keyword.value for keyword in handed.keywords)) if node is not None]
        if any(origins(facts.values(node), Role.MODEL) & program.model_origins for node in given):
            why = f"{handed.by}() hands a process of the program's own the model, as it is before prepare"
            way_out = "run that process apart from the training, on its checkpoints, then run migrate again"
            yield Refusal(call.node, "MIG111", why, way_out)


def _calls(facts: Facts, program: Program) -> list[Call]:
    """The calls that lead to the training loops, directly or not."""
    found: dict[ast.Call, Call] = {}
    waiting: list[Unit] = [loop.unit for loop in program.training]
    seen: set[Unit] = set()
    while waiting:
        unit = waiting.pop()
        if unit in seen or not isinstance(unit, Function):
            continue
        seen.add(unit)
        for call in facts.callers(unit):
            found[call.node] = call
            waiting.append(call.caller)
        waiting += [unit.parent] if unit.parent is not None else []
    return list(found.values())


def is_users_choice(facts: Facts, node: ast.AST) -> bool:
    """Whether a branch is taken by a flag, not by how many GPUs the machine has or who started the process."""
    if not isinstance(node, (ast.If, ast.IfExp)) or "__name__" in ast.unparse(node.test):
        return False
    read = [inner for inner in ast.walk(node.test) if isinstance(inner, (ast.Name, ast.Attribute, ast.Call))]
    values = frozenset().union(*(facts.values(inner) for inner in read))
    if any(value.role in (Role.HOLDER, Role.METHOD) for value in values):
        return facts.once(_set_by_launcher).isdisjoint(getattr(inner, "attr", "") for inner in read)
    counted = any(value.role in PLACE or (value.role is Role.NUMBER and value.origin is not None) for value in values)
    return not (counted or Role.AVAILABLE in roles(values) or "environ" in ast.unparse(node.test))


def _set_by_launcher(facts: Facts) -> frozenset[str]:
    """`args.distributed = "RANK" in os.environ`: the attributes that go by what started the process."""
    found: set[str] = set()
    for module in facts.modules:
        if b"environ" not in module.file.content:
            continue
        for node in facts.tree_of(module).nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Constant, ast.Compare, ast.BoolOp)):
                tests = [above.test for above in facts.tree_of(module).up(node) if isinstance(above, ast.If)]
                if any("environ" in ast.unparse(part) for part in (node.value, *tests)):
                    found |= {target.attr for target in node.targets if isinstance(target, ast.Attribute)}
    return frozenset(found)


def is_option(facts: Facts, node: ast.Call) -> bool:
    """Whether a call stands behind a flag without which the program goes on, and does not end."""
    below: ast.AST = node
    for above in facts.tree(node).up(node):
        if is_users_choice(facts, above):
            other = above.orelse if isinstance(above, ast.If) and below in above.body else getattr(above, "body", [])
            if not isinstance(other, list) or not gives_up(other):
                return True
        below = above
    return False
