"""Batches that must still be on the CPU, which they are not when their loader is prepared."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import tensors
from migrate.analysis.roles import ROWS, Role, origins, roles
from migrate.analysis.syntax import writes
from migrate.programs.devices import is_move
from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


def unsafe_batches(facts: Facts, program: Program, prepared: set[ast.AST]) -> list[Refusal]:
    """Places where a batch must still be on the CPU."""
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
    for loop in (*program.training, *program.evaluation):
        if loop.loaders & prepared:
            found += _meetings(facts, loop, prepared)
    return found


def _mixes(facts: Facts, node: ast.expr, prepared: set[ast.AST]) -> bool:
    """Whether an expression puts a batch together with a tensor that is made on the CPU."""
    parts = [inner for inner in ast.walk(node) if isinstance(inner, (ast.Name, ast.Call))]
    batch = any(isinstance(n, ast.Name) and origins(facts.values(n), Role.BATCH) & prepared for n in parts)
    return batch and any(
        roles(facts.values(n)) == {Role.TENSOR} and not _has_device(n) for n in parts if facts.values(n)
    )


def _has_device(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and any(keyword.arg == "device" for keyword in node.keywords)


# --- a batch that was not moved yet, and a tensor that never is -----------------------------------------------------


def _meetings(facts: Facts, loop: LoopFact, prepared: set[ast.AST]) -> Iterator[Refusal]:
    """`onehot[y]` before `y` is moved: of a prepared loader `y` is on the device, and `onehot` stays on the CPU."""
    for node in ast.walk(loop.node):
        operands = list(_operands(node))
        batches = [o for o in operands if _is_unmoved(facts, loop, o, prepared)]
        made = [o for o in operands if isinstance(o, ast.Name) and _is_on_cpu(facts, loop, o)]
        if batches and made and isinstance(node, ast.expr):
            yield Refusal(
                node,
                "MIG103",
                f"{ast.unparse(node)} takes a batch that was not moved yet, and {made[0].id}, which is made on the CPU",
                f"move {made[0].id} to the device where it is made, and the batch before this; then run migrate again",
            )


def _operands(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that an operation puts together, and that have to be on one device."""
    if isinstance(node, ast.Subscript):
        yield from (node.value, *(node.slice.elts if isinstance(node.slice, ast.Tuple) else (node.slice,)))
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Attribute):
            yield node.func.value
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from argument.elts if isinstance(argument, (ast.Tuple, ast.List)) else (argument,)


def _is_unmoved(facts: Facts, loop: LoopFact, node: ast.expr, prepared: set[ast.AST], line: int | None = None) -> bool:
    """Whether an expression is made of nothing but parts of a batch as the loader gave it."""
    if not origins(facts.values(node), Role.BATCH, Role.SAMPLES) & prepared:
        return False
    line = line or node.lineno
    names = [inner for inner in ast.walk(node) if isinstance(inner, ast.Name)]
    batches = [name for name in names if origins(facts.values(name), Role.BATCH, Role.SAMPLES) & prepared]
    own = all(not isinstance(inner, ast.Call) or isinstance(inner.func, ast.Attribute) for inner in ast.walk(node))
    return own and bool(batches) and not _moved(node) and all(_is_raw(facts, loop, n, prepared, line) for n in batches)


def _is_raw(facts: Facts, loop: LoopFact, name: ast.Name, prepared: set[ast.AST], line: int) -> bool:
    """Whether a name is still what the loop's target was, or a part of it."""
    if any(isinstance(n, ast.Name) and n.id == name.id for move in _moved(loop.node, line) for n in ast.walk(move)):
        return False
    latest = _binding(loop, name.id, line)
    if latest is None:
        return isinstance(loop.node, (ast.For, ast.AsyncFor)) and name.id in writes(loop.node.target)
    return _is_unmoved(facts, loop, latest.value, prepared, latest.lineno)


def _binding(loop: LoopFact, name: str, line: int) -> ast.Assign | None:
    """The last assignment of a name in the loop before a line."""
    bound = (n for n in ast.walk(loop.node) if isinstance(n, ast.Assign) and name in writes(n) and n.lineno < line)
    return max(bound, key=lambda statement: statement.lineno, default=None)


def _is_on_cpu(facts: Facts, loop: LoopFact, name: ast.Name) -> bool:
    """Whether a name holds a tensor that was made without a device and was not moved since."""
    values = facts.values(name)
    if not values or roles(values) != {Role.TENSOR}:
        return False
    made = [value.origin for value in values]
    if not all(isinstance(origin, ast.Call) and not _names_device(origin) for origin in made):
        return False
    root = facts.tree(name).root
    if any(origin is not None and loop.node in facts.tree(origin).up(origin) for origin in made) and not _moved(root):
        return False  # a program without a device: these are made on the accelerator's
    latest = _binding(loop, name.id, name.lineno)
    moved = _moved(latest if latest is not None else root)
    return not any(isinstance(inner, ast.Name) and inner.id == name.id for move in moved for inner in ast.walk(move))


def _names_device(call: ast.Call) -> bool:
    return any(
        (isinstance(inner, ast.keyword) and inner.arg in ("device", None))
        or (isinstance(inner, ast.Attribute) and inner.attr in tensors.MOVES)
        for inner in ast.walk(call)
    )


def _moved(root: ast.AST, line: int | None = None) -> list[ast.expr]:
    """What is moved by `.to(...)`, `.cuda()` below a node, up to a line, wherever to."""
    return [
        node.func.value
        for node in ast.walk(root)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in tensors.MOVES
        and (line is None or node.lineno <= line)
    ]
