"""Loops that cannot be converted for what they do with their batches: training and evaluating by turns, and mixing."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import writes
from migrate.programs.devices import is_move, names_cpu
from migrate.programs.phases import Phase, Phases
from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops


def phases_in_turns(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """One loop that trains and evaluates: what fills up the last batch in training must not count in evaluation."""
    phases = Phases(facts)
    for loop in program.training:
        found = phases.of(loop)
        if found.flag is not None and (found.phase is Phase.MIXED or len(loop.loaders) > 1):
            yield Refusal(
                loop.node,
                "MIG114",
                f"this loop trains or evaluates by turns ({ast.unparse(found.flag.test)}), so its evaluation cannot be "
                "shared out",
                "write the evaluation as a loop of its own",
            )


def mixed_before_moved(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """`memory = torch.cat([memory, x])` and then `x = x.to(device)`: x is on the device at once when it is prepared."""
    for loop in (*program.training, *program.evaluation):
        until, hosted = _raw_until(facts, loop), _hosted(loop)
        for node in ast.walk(loop.node) if until else ():
            if not isinstance(node, (ast.Call, ast.BinOp, ast.Compare)) or _is_ours(facts, node):
                continue
            read = [n for n in _operands(facts, node) if isinstance(n, ast.Name)]
            raw = [n for n in read if n.id in until and n.lineno < until[n.id]]
            other: list[ast.expr] = [n for n in read if n.id not in until and _is_on_host(facts, n, hosted)]
            other += [n for n in _operands(facts, node) if _brings_back(n)]
            if raw and other:
                yield Refusal(
                    node,
                    "MIG103",
                    f"{ast.unparse(other[0])} and {raw[0].id} are put together on the CPU, and {raw[0].id} comes from "
                    "a loader that would be prepared",
                    f"move {raw[0].id} first, and keep the other on the device, too",
                )
                return


def _operands(facts: Facts, node: ast.Call | ast.BinOp | ast.Compare) -> list[ast.expr]:
    """What a call or an operator puts together, the elements of lists and tuples included."""
    if isinstance(node, ast.BinOp):
        given = [node.left, node.right]
    elif isinstance(node, ast.Compare):
        given = [node.left, *node.comparators]
    else:
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(node.func, ast.Attribute) and not facts.called(node):
            given.append(node.func.value)
    inner = [element for each in given if isinstance(each, (ast.List, ast.Tuple)) for element in each.elts]
    return [_plain(each) for each in (*given, *inner)]


def _plain(node: ast.expr) -> ast.expr:
    """`y` of `y[:, None]`, `y.view(-1)`, `y.argmax(1)`."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in _ELSEWHERE:
            node = node.func.value
        else:
            return node


#: Methods whose results are not where the tensor is.
_ELSEWHERE = frozenset("cpu to cuda numpy item tolist size".split())
_COLLECTING = frozenset("append extend add update write insert".split())  # methods of what holds tensors


def _is_on_host(facts: Facts, name: ast.Name, hosted: set[str]) -> bool:
    return name.id in hosted or Role.TENSOR in roles(facts.values(name))


def _brings_back(node: ast.AST) -> bool:
    """`x.cpu()`, also with further methods behind it that keep it a tensor."""
    return any(
        isinstance(inner, ast.Call)
        and isinstance(inner.func, ast.Attribute)
        and (inner.func.attr == "cpu" or (inner.func.attr == "to" and names_cpu(inner)))
        for inner in ast.walk(node)
    ) and not any(isinstance(inner, ast.Attribute) and inner.attr in _NO_TENSOR for inner in ast.walk(node))


_NO_TENSOR = frozenset({"numpy", "item", "tolist"})


def _hosted(loop: LoopFact) -> set[str]:
    """The names that a loop gives something it has brought back from the device."""
    found: set[str] = set()
    for node in ast.walk(loop.node):
        if isinstance(node, ast.Assign) and _brings_back(node.value):
            found |= writes(node)
    return found


def _is_ours(facts: Facts, node: ast.AST) -> bool:
    """Whether a call is not one of PyTorch's, which want everything on one device."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _COLLECTING:
        return True
    names = facts.called(node)
    return bool(facts.targets(node)) or is_move(facts, node) or any(not name.startswith("torch.") for name in names)


def _raw_until(facts: Facts, loop: LoopFact) -> dict[str, int]:
    """The names of the batch of a loop with moves, each with the line from which on it is the moved one."""
    if not isinstance(loop.node, (ast.For, ast.AsyncFor)):
        return {}
    tree, end = facts.tree(loop.node), (loop.node.end_lineno or 0) + 1
    found: dict[str, int] = {}
    has_moves = False
    for node in ast.walk(loop.node):
        if isinstance(node, ast.Call) and is_move(facts, node) and isinstance(node.func, ast.Attribute):
            has_moves = True
            for name in writes(tree.statement(node)):
                found[name] = min(found.get(name, end), node.lineno)
    batch = {n.id for n in ast.walk(loop.node.target) if isinstance(n, ast.Name) and _is_batch(facts, n)}
    return {name: found.get(name, end) for name in batch} if has_moves else {}


def _is_batch(facts: Facts, name: ast.Name) -> bool:
    return bool(roles(facts.values(name)) & FROM_LOADER)
