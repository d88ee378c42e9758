"""Lengths that an evaluation needs and that are taken elsewhere: the accelerator is asked for them.

    self.batches = len(self.held)      # before anything is evaluated, so of a process's share of the batches
    ...
    print(total / self.batches)        # while every process goes through all of them in an evaluation

Where nothing trains on the loader, there is no other length that could be meant, whatever becomes of it. Of a loader
that is trained on as well, it is followed to where it is read. One that trainings and evaluations read is that of a
training, and each evaluation asks for its own. A generator that hands batches on, `for batch in loader: yield batch`,
takes that of the pass it makes.

In an evaluation of the runtime the rows of each batch are shared out, so it has as many steps as on one process, and
len() is that of the last pass. With Accelerate it is always that of a process's share.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import walk
from migrate.analysis.units import Function, Module
from migrate.programs.evaluation.measured import is_known_for_one
from migrate.programs.program import Refusal
from migrate.programs.training.modes import Modes
from migrate.programs.values.accumulators import statements_after
from migrate.programs.values.lengths import measured
from migrate.programs.values.readers import readers
from migrate.programs.values.takes import hands_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.conversion import Conversion
    from migrate.programs.loops import LoopFact
    from migrate.programs.program import Program
    from migrate.programs.values.readers import Reader


@dataclass(frozen=True, slots=True)
class Asked:
    """Where the accelerator is asked for the steps of an evaluation."""

    taken: list[ast.Call] = field(default_factory=list)  # where the length is taken
    read: dict[ast.expr, ast.Call] = field(default_factory=dict)  # where what a training takes as well is read
    unclear: dict[ast.expr, ast.Call] = field(default_factory=dict)  # where nobody can tell of which pass it must be


def asked(conversion: Conversion) -> Asked:
    """The lengths that are taken elsewhere than in the evaluation that needs them."""
    found = Asked()
    if conversion.package != "runtime" or not conversion.shared:
        return found
    facts, program, modes = conversion.facts, conversion.program, conversion.program.once(Modes, conversion.facts)
    shared = set().union(*(each.loop.loaders for each in conversion.shared)) & conversion.loader_origins
    done = {call for each in conversion.shared for call in each.asked}
    moved = [node for each in conversion.shared for statement in each.measured for node in ast.walk(statement)]
    done.update(node for node in moved if isinstance(node, ast.Call))
    for call in (use.node for use in conversion.uses if use.node not in done):
        loaders = measured(facts, call)
        if not loaders & shared or not conversion.is_prepared_at(call, loaders):
            continue
        if roles(facts.values(call.args[0])) != {Role.LOADER}:
            continue
        at = last_pass(facts, program, call)
        if loaders & program.training_loaders:
            _of_both(facts, program, call, at, found)
        elif at is None or _trains(program, at) or not at.loaders & loaders:
            passes = [loop for loop in program.evaluation if loop.loaders & loaders]
            if not all(is_known_for_one(facts, modes, loop, call) for loop in passes):
                found.taken.append(call)
    return found


def _trains(program: Program, loop: LoopFact) -> bool:
    return any(other.node is loop.node for other in program.training)


def needed_apart(conversion: Conversion) -> Iterator[Refusal]:
    """Numbers of batches by which a training and an evaluation go, where the evaluation cannot ask for its own."""
    for node, call in asked(conversion).unclear.items():
        message = f"`{ast.unparse(node)}` goes by {ast.unparse(call)} (line {call.lineno}), that of a training on each"
        yield Refusal(
            node,
            "MIG114",
            f"{message} process's share of the data, and counts the batches of an evaluation here",
            "take the length of the evaluation's loader by itself, below its loop",
        )


def _of_both(facts: Facts, program: Program, call: ast.Call, at: LoopFact | None, found: Asked) -> None:
    """Where the length of a loader that is trained on must be that of an evaluation."""
    training: list[Reader] = []
    evaluating: list[Reader] = []
    handed_on = _is_handed_on(facts, call)
    for reader in readers(facts, call):
        if reader.node is call or (handed_on and facts.unit(reader.node) is facts.unit(call)):
            continue
        for loop in _passes_at(facts, program, reader.node):
            if at is None or loop.node is not at.node:
                (training if _trains(program, loop) else evaluating).append(reader)
    if not evaluating:
        return
    if not training and (at is None or _trains(program, at)):
        found.taken.append(call)
        return
    for reader in dict.fromkeys(evaluating):
        is_clear = reader.is_plain and reader not in training and _has_loader(facts, reader, call)
        (found.read if is_clear else found.unclear)[reader.node] = call


def last_pass(facts: Facts, program: Program, node: ast.AST) -> LoopFact | None:
    """The loop over batches that a node stands in, or else the last one above it in its function."""
    tree, unit = facts.tree(node), facts.unit(node)
    here = [loop for loop in (*program.training, *program.evaluation) if loop.unit is unit]
    around = [loop for loop in here if loop.node in set(tree.up(node))]
    above = around or [loop for loop in here if tree.in_block(node, statements_after(facts, loop.node)) is not None]
    return max(above, key=lambda loop: loop.node.lineno, default=None)


def _is_handed_on(facts: Facts, call: ast.Call) -> bool:
    """Whether a length is taken in the pass, or below it, that a generator makes for what runs over the generator."""
    unit, tree, over = facts.unit(call), facts.tree(call), measured(facts, call)
    for loop in walk(unit.node) if isinstance(unit, Function) else ():
        if isinstance(loop, ast.For) and facts.loaders(facts.values(loop.iter)) == over and hands_on(loop):
            if loop in tree.up(call) or tree.in_block(call, statements_after(facts, loop)) is not None:
                return True
    return False


def _passes_at(facts: Facts, program: Program, node: ast.AST, depth: int = 3) -> Iterator[LoopFact]:
    """The passes that a node may belong to: those of its function, or else of the code that calls that."""
    found, unit = last_pass(facts, program, node), facts.unit(node)
    if found is not None:
        yield found
    elif depth and isinstance(unit, Function):
        for call in facts.callers(unit):
            yield from _passes_at(facts, program, call.node, depth - 1)


def _has_loader(facts: Facts, reader: Reader, call: ast.Call) -> bool:
    """Whether the loader has the same name where a number is read as where its length was taken."""
    loader, here, there = call.args[0], facts.unit(reader.node), facts.unit(call)
    if here is there:
        return isinstance(loader, (ast.Name, ast.Attribute))
    if isinstance(loader, ast.Name):
        is_own = any(binding.target == loader.id for binding in facts.bindings_in(here))
        is_own |= isinstance(here, Function) and loader.id in here.parameter_names
        return isinstance(there, Module) and here.module is there and not is_own
    match loader, reader.node:
        case ast.Attribute(value=ast.Name(owner) as one), ast.Attribute(value=ast.Name(other) as held):
            return owner == other and facts.values(one) == facts.values(held)
    return False
