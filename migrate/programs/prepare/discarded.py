"""Results of a trained model that its loss has no use for: the layers that made them get no gradients from it.

    validity, _ = discriminator(images)     # of `return self.validity(x), self.label(x)`

DistributedDataParallel waits for the gradients of all layers. What rests on the same layers as the results that are
used, as the states of a recurrent layer do, is no matter.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import FUNCTIONS, LOOPS, blocks, own_expressions, reads, walk, writes
from migrate.programs.prepare.chosen_layers import forwards
from migrate.programs.reach.outsiders import units_of
from migrate.programs.training.gradients_off import without_gradients

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function, Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program


def discarded(facts: Facts, loops: Loops, program: Program) -> Iterator[ast.Assign]:
    """Assignments in training loops that leave out a result which layers of its own have made."""
    training = {loop.node for loop in program.training}
    for unit in units_of(facts, program):
        for node in facts.own(unit):
            unused = _unused(facts, unit, node)
            if not unused or not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            is_trained = origins(facts.values(node.value.func), Role.MODEL) & program.model_origins
            in_loop = any(loop in training for loop in loops.around(node.value, unit))
            if is_trained and in_loop and not without_gradients(facts, node.value):
                if any(_rests_on_own_layers(forward, unused) for forward in forwards(facts, node.value)):
                    yield node


def _unused(facts: Facts, unit: Unit, node: ast.AST) -> tuple[bool, ...]:
    """For each of several names that are assigned, whether nothing reads it; empty where all are read, or none is."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
        return ()
    targets = node.targets[0].elts
    if any(isinstance(target, ast.Starred) for target in targets):
        return ()
    after = _after(facts, unit, node)
    block = facts.tree(node).block(node)
    found = tuple(isinstance(target, ast.Name) and not _is_read(target.id, after, block) for target in targets)
    return found if any(found) and not all(found) else ()


def _after(facts: Facts, unit: Unit, node: ast.Assign) -> list[ast.stmt]:
    """The statements that may come after one: those below it, and those above it in its loop, which come again."""
    tree = facts.tree(node)
    loop = next((above for above in tree.up(node) if isinstance(above, (*LOOPS, *FUNCTIONS))), None)
    top = loop.lineno if isinstance(loop, LOOPS) else node.lineno
    found = sorted(facts.own(unit).of(ast.stmt), key=lambda n: n.lineno)
    again = [statement for statement in found if top < statement.lineno < node.lineno]
    return [statement for statement in found if statement.lineno > node.lineno] + again


def _is_read(name: str, after: list[ast.stmt], block: list[ast.stmt]) -> bool:
    """Whether a name is read before it is surely assigned again, which a statement of the same block does."""
    for statement in after:
        own = list(own_expressions(statement)) if any(blocks(statement)) else [statement]
        if any(name in reads(part) for part in own):
            return True
        if statement in block and any(name in writes(part) for part in own):
            return False
    return False


def _rests_on_own_layers(forward: Function, unused: tuple[bool, ...]) -> bool:
    """Whether a result that is not used was made by layers which made none of those that are."""
    for node in walk(forward.node):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(unused):
            parts = list(zip(node.value.elts, unused, strict=True))
            used = _layers(forward.node, (part for part, is_unused in parts if not is_unused))
            if _layers(forward.node, (part for part, is_unused in parts if is_unused)) - used:
                return True
    return False


def _layers(forward: ast.AST, results: Iterable[ast.expr]) -> set[str]:
    """The attributes of the model that are called on the way to these results."""
    assigned: dict[str, list[ast.expr]] = {}
    for node in walk(forward):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for name in walk(target):
                    if isinstance(name, ast.Name):
                        assigned.setdefault(name.id, []).append(node.value)
    found: set[str] = set()
    waiting, seen = list(results), set()
    while waiting:
        for node in walk(waiting.pop()):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                found.add(ast.unparse(node.func))
            if isinstance(node, ast.Name) and node.id not in seen:
                seen.add(node.id)
                waiting += assigned.get(node.id, [])
    return {name for name in found if name.startswith("self.")}
