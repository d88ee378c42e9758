"""What is one process's own after a training loop, and what a program decides by it.

Each process trains on its share of the batches. The last `loss`, a list of outputs: of these every process has others.
To print them is harmless; to stop, to save or to set a learning rate by them lets the processes part ways.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import reads, writes
from migrate.programs.accumulators import appended, is_own, statements_after
from migrate.programs.joins import apart, fed
from migrate.programs.trail import FILLING, Trail

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function
    from migrate.programs.accumulators import Accumulator
    from migrate.programs.ground import Decision, Ground
    from migrate.programs.joins import Join
    from migrate.programs.loops import LoopFact

_DEEPEST = 4  # calls between a training loop and what it leaves in attributes


def left_over(
    facts: Facts, loop: LoopFact, accumulated: Collection[Accumulator], joined: Collection[Join]
) -> list[str]:
    """Names that are not joined, hold something of the process's own batches, and are read after the loop."""
    read: set[str] = set()
    new: set[str] = set()
    for statement in statements_after(facts, loop.node):
        if isinstance(statement, (ast.For, ast.While)):
            new |= writes(statement)  # another loop sets its own names before it reads them
            continue
        read |= reads(statement) - writes(statement) - new
        read |= {ast.unparse(n) for n in ast.walk(statement) if isinstance(n, (ast.Attribute, ast.Subscript))}
    return sorted(_own_names(facts, loop, accumulated, joined) & read)


def decisions(
    ground: Ground, loop: LoopFact, accumulated: Collection[Accumulator], joined: Collection[Join]
) -> Iterator[Decision]:
    """What is decided by one process's own values after the loop, in whatever code they come to."""
    facts = ground.facts
    yield from Trail(ground, loop.unit, _own_names(facts, loop, accumulated, joined)).after(loop.node)
    feeding = {call for calls in fed(facts, loop, loop.node).values() for call in calls}
    for unit in _entered(facts, loop.node, feeding):
        held = _own_places(facts, loop, unit.node) | fed(facts, loop, unit.node).keys()
        yield from Trail(ground, unit, held).elsewhere()


def _entered(facts: Facts, node: ast.AST, but: Container[ast.AST]) -> set[Function]:
    """The functions of the project that code comes to; not by calls whose objects are followed by their names."""
    found: set[Function] = set()
    level: set[ast.AST] = {node}
    for _ in range(_DEEPEST):
        calls = [n for code in level for n in ast.walk(code) if isinstance(n, ast.Call) and n not in but]
        new = {target for call in calls for target in facts.targets(call)} - found
        found |= new
        level = {target.node for target in new}
    return found


def _own_names(
    facts: Facts, loop: LoopFact, accumulated: Collection[Accumulator], joined: Collection[Join]
) -> set[str]:
    kept: set[str] = set()
    for node in ast.walk(loop.node):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                kept |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and is_own(facts, loop, n)}
    kept |= {name for name, added in appended(facts, loop).items() if any(is_own(facts, loop, v) for v in added)}
    kept |= _own_places(facts, loop, loop.node) | apart(facts, loop, joined).keys()
    return kept - {accumulator.name for accumulator in accumulated if not _is_read_early(accumulator)}


def _is_read_early(accumulator: Accumulator) -> bool:
    """Whether it goes on growing over an outer loop, and is read there before the shares are joined."""
    within = {id(node) for node in ast.walk(accumulator.loop.node)}
    return any(
        isinstance(node, ast.Name) and node.id == accumulator.name and isinstance(node.ctx, ast.Load)
        for node in ast.walk(accumulator.after)
        if id(node) not in within
    )


def _own_places(facts: Facts, loop: LoopFact, root: ast.AST) -> set[str]:
    """Attributes and items that get something of a loop's batches in code of it, as they are written: `self.losses`."""
    found: set[str] = set()
    for node in ast.walk(root):
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AugAssign):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLING:
            pairs = [(node.func.value, argument) for argument in node.args]
        else:
            continue
        found |= {
            ast.unparse(target)
            for target, value in pairs
            if isinstance(target, (ast.Attribute, ast.Subscript)) and is_own(facts, loop, value)
        }
    return found
