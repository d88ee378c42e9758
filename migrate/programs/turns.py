"""Loops that cannot be converted for what they do with their batches: training and evaluating by turns, and mixing."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import writes
from migrate.programs.devices import is_move
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
                f"this loop trains or evaluates, by {ast.unparse(found.flag.test)}: its evaluation cannot be shared out",
                "write the evaluation as a loop of its own",
            )


def mixed_before_moved(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """`memory = torch.cat([memory, x])` and then `x = x.to(device)`: x is on the device at once when it is prepared."""
    for loop in program.training:
        until = _raw_until(facts, loop)
        for node in ast.walk(loop.node):
            if not isinstance(node, (ast.Call, ast.BinOp)) or _is_ours(facts, node):
                continue
            read = [n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)]
            raw = [n for n in read if n.id in until and n.lineno < until[n.id]]
            other = [n for n in read if n.id not in until and Role.TENSOR in roles(facts.values(n))]
            if raw and other and not any(_is_looked_at(facts, n) for n in (*raw, *other)):
                yield Refusal(
                    node,
                    "MIG103",
                    f"{other[0].id} and {raw[0].id} are put together on the CPU, before {raw[0].id} is moved",
                    f"move {raw[0].id} first, and keep {other[0].id} on the device, too",
                )
                return


def _is_ours(facts: Facts, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (bool(facts.targets(node)) or is_move(facts, node))


def _is_looked_at(facts: Facts, name: ast.Name) -> bool:
    """`x.shape`, `x.size(0)`, `len(x)`: nothing of the tensor itself."""
    parent = facts.tree(name).parents[name]
    if isinstance(parent, ast.Attribute):
        return True
    return isinstance(parent, ast.Call) and bool(facts.called(parent) & {"builtins.len"})


def _raw_until(facts: Facts, loop: LoopFact) -> dict[str, int]:
    """The names of the loop's batch that are moved in it, each with the line from which on it is the moved one."""
    if not isinstance(loop.node, (ast.For, ast.AsyncFor)):
        return {}
    tree, found = facts.tree(loop.node), dict[str, int]()
    for node in ast.walk(loop.node):
        if isinstance(node, ast.Call) and is_move(facts, node) and isinstance(node.func, ast.Attribute):
            moved = node.func.value
            if isinstance(moved, ast.Name) and moved.id in writes(loop.node.target):
                statement = tree.statement(node)
                end = statement.lineno if moved.id in writes(statement) else (loop.node.end_lineno or 0) + 1
                found[moved.id] = min(found.get(moved.id, end), end)
    return found
