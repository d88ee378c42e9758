"""Every `.to(device)` and `.cuda()` of a program, with what becomes of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import DISTRIBUTED_DATA_PARALLEL
from migrate.analysis.roles import FROM_LOADER, ROWS, Role, origins, roles
from migrate.analysis.units import Function, Unit
from migrate.programs.devices import is_move
from migrate.programs.early import needs_device
from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree


class Fate(Enum):
    """What becomes of a move."""

    MODEL = "the model is placed by prepare"
    BATCH = "the batch comes from a prepared loader"
    CRITERION = "the loss function has no tensors of its own"
    ELSEWHERE = "goes to the accelerator's device"
    UNTOUCHED = "is no part of the training program"


@dataclass(frozen=True, slots=True)
class Move:
    """One call that moves something to the training device."""

    node: ast.Call
    unit: Unit
    fate: Fate

    @property
    def is_dropped(self) -> bool:
        """Whether the call gives way to its receiver."""
        return self.fate in (Fate.MODEL, Fate.BATCH, Fate.CRITERION)


def moves(facts: Facts, program: Program, prepared: set[ast.AST], inside: set[Unit], prepare: ast.stmt) -> list[Move]:
    """The moves in the units of a program; `prepared` is where the prepared loaders were made."""
    return [
        Move(
            use.node,
            use.unit,
            _fate(facts, program, prepared, use.node, prepare)
            if use.unit in inside and not is_in_left_branch(facts, use.node)
            else Fate.UNTOUCHED,
        )
        for use in facts.calls
        if is_move(facts, use.node)
    ]


def _mixes(facts: Facts, node: ast.expr, prepared: set[ast.AST]) -> bool:
    """Whether an expression puts a batch together with a tensor that is made on the CPU."""
    parts = [inner for inner in ast.walk(node) if isinstance(inner, (ast.Name, ast.Call))]
    batch = any(isinstance(n, ast.Name) and origins(facts.values(n), Role.BATCH) & prepared for n in parts)
    return batch and any(
        roles(facts.values(n)) == {Role.TENSOR} and not _has_device(n) for n in parts if facts.values(n)
    )


def _has_device(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and any(keyword.arg == "device" for keyword in node.keywords)


def is_in_left_branch(facts: Facts, node: ast.AST) -> bool:
    """Whether a node stands in a branch that wraps the model in DistributedDataParallel itself: it is left as it is."""
    tree = facts.tree(node)
    for use in facts.calls_to(DISTRIBUTED_DATA_PARALLEL):
        if use.node in tree:
            branch = _nearest_branch(tree, use.node)
            if branch is not None and tree.in_block(node, branch) is not None:
                return True
    return False


def _nearest_branch(tree: Tree, node: ast.AST) -> list[ast.stmt] | None:
    """The body or else part that holds a node, of the innermost `if` around it."""
    below = node
    for above in tree.up(node):
        if isinstance(above, ast.If):
            return next((b for b in (above.body, above.orelse) if any(below is s for s in b)), None)
        below = above
    return None


def _fate(facts: Facts, program: Program, prepared: set[ast.AST], node: ast.Call, prepare: ast.stmt) -> Fate:
    receiver = facts.receiver(node)
    found = roles(receiver)
    if Role.MODEL in found and found <= {Role.MODEL, Role.TENSOR}:
        mine = origins(receiver, Role.MODEL)
        assert program.home is not None
        stays = _draws_on_device(facts, node, mine) or _leaves_device(facts, mine)
        stays = stays or needs_device(facts, node, mine, program.home, prepare)
        return Fate.MODEL if mine <= program.model_origins and not stays else Fate.ELSEWHERE
    if found == {Role.CRITERION}:
        return Fate.CRITERION if not _holds_tensors(facts, node) else Fate.ELSEWHERE
    if found and found <= ROWS and origins(receiver, *ROWS) <= prepared:
        return Fate.ELSEWHERE if _is_early(facts, program, node, prepare) else Fate.BATCH
    return Fate.ELSEWHERE


def _is_early(facts: Facts, program: Program, node: ast.Call, prepare: ast.stmt) -> bool:
    """Whether a batch may have been taken from its loader before that was prepared: `x, y = next(iter(loader))`."""
    if facts.unit(node) is not program.home or any(True for _ in facts.tree(node).loops(node)):
        return False
    read = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    end = prepare.end_lineno or prepare.lineno
    return node.lineno <= end or any(
        binding.target in read and binding.statement.lineno <= end
        for binding in facts.bindings_in(program.home)
        if roles(binding.values) & FROM_LOADER
    )


def _draws_on_device(facts: Facts, node: ast.Call, mine: set[ast.AST]) -> bool:
    """Whether the model's weights are drawn after the move: on the device's own random stream, so it must stay there.

    `Net().to(device)` then `net.apply(init)` draws from the GPU's generator; moved later, other weights would come out.
    """
    return any(
        origins(facts.receiver(use.node), Role.MODEL) & mine and use.node.lineno >= node.lineno and use.node is not node
        for use in facts.method_calls("apply", "init_weights", "reset_parameters", "weight_init")
    )


def _leaves_device(facts: Facts, mine: set[ast.AST]) -> bool:
    """Whether the program takes the model off the device (to save it, say) and so has to bring it back by hand."""
    return any(
        origins(facts.receiver(use.node), Role.MODEL) & mine and (use.node.func.attr == "cpu" or _names_cpu(use.node))  # type: ignore[attr-defined]
        for use in facts.method_calls("cpu", "to")
    )


def _names_cpu(node: ast.Call) -> bool:
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    return any(
        isinstance(inner, ast.Constant) and inner.value == "cpu" for argument in given for inner in ast.walk(argument)
    )


def _holds_tensors(facts: Facts, node: ast.Call) -> bool:
    """Whether the loss function was made with tensors (class weights) that must live on the device."""
    assert isinstance(node.func, ast.Attribute)
    for value in facts.values(node.func.value):
        if not isinstance(value.origin, ast.Call) or value.unit is not None:
            return True
        named = {keyword.arg for keyword in value.origin.keywords}
        if value.origin.args or named & {"weight", "pos_weight", None}:
            return True
    return False


def units_of(facts: Facts, program: Program) -> set[Unit]:
    """The units of a program: home, what it calls, what is defined there, the methods beside a home `__init__`."""
    assert program.home is not None
    found: set[Unit] = set()
    waiting: list[Unit] = [program.home]
    if isinstance(program.home, Function) and program.home.owner is not None and program.home.name == "__init__":
        waiting += [unit for unit in facts.functions if unit.owner is program.home.owner]
    while waiting:
        unit = waiting.pop()
        if unit in found or not facts.is_editable(unit):
            continue
        found.add(unit)
        waiting += _entered(facts, unit)
    return found


def _entered(facts: Facts, unit: Unit) -> list[Unit]:
    found: list[Unit] = [u for u in facts.functions if u.parent is unit]
    for node in facts.own(unit):
        if isinstance(node, ast.Call):
            found += [target for target in facts.targets(node) if not _is_model_code(facts, target)]
    return found


#: What the model, or the loader's workers, call.
_INSIDE = frozenset({Role.MODEL, Role.CRITERION, Role.DATASET, Role.SAMPLER})


def _is_model_code(facts: Facts, unit: Function) -> bool:
    """Methods of models and data sets run inside the model or the loader's workers; they have no accelerator."""
    return unit.owner is not None and bool(facts.roles_of_bases(unit.owner) & _INSIDE)


def unsafe_batches(facts: Facts, program: Program, prepared: set[ast.AST]) -> list[Refusal]:
    """Places where a batch must still be on the CPU, which it is not when its loader is prepared."""
    found = []
    for use in facts.calls:
        func = use.node.func
        if isinstance(func, ast.Attribute) and func.attr == "pin_memory":
            if origins(facts.receiver(use.node), *ROWS) & prepared:
                found.append(
                    Refusal(
                        use.node,
                        "MIG103",
                        "the batch is pinned here, which it can only be on the CPU",
                        "pin it in the loader instead: DataLoader(..., pin_memory=True)",
                    )
                )
        if is_move(facts, use.node) and isinstance(func, ast.Attribute) and not isinstance(func.value, ast.Name):
            if _mixes(facts, func.value, prepared):
                found.append(
                    Refusal(
                        use.node,
                        "MIG103",
                        "a batch and a tensor made on the CPU are put together before they are moved",
                        "make the tensor on the batch's device (device=batch.device) and run migrate again",
                    )
                )
    return found
