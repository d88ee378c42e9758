"""Loops that take a number of batches from an iterator, one by one: `for step in range(steps): batch = next(batches)`.

Where that number is counted from the data (`steps = len(data) // 64`), each process would ask for as many batches as
one process has, and its share of the loader has fewer. So it would where the iterator is made anew by such a number,
inside of the loop: `if step % steps == 0: batches = iter(loader)`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from migrate.analysis.syntax import TRIES
from migrate.programs.program import Refusal
from migrate.programs.values.lengths import Moments, measured
from migrate.programs.values.rounds import lengths, rounds
from migrate.programs.values.takes import asked, taken

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion
    from migrate.programs.program import Program
    from migrate.programs.stages import Stages


@dataclass(frozen=True, slots=True)
class Counted:
    """How many batches such a loop takes, and the loader that they come from, as the code around it names that."""

    number: ast.expr
    loader: ast.expr


def counted(conversion: Conversion) -> Iterator[Counted]:
    """The loops over prepared loaders that may ask for more than a process's share; each number once."""
    facts, seen = conversion.facts, set()
    for use in conversion.uses:
        loaders = taken(facts, use.node) & conversion.loader_origins
        if not loaders or len(use.node.args) > 1:  # next(batches, None) knows what comes after the last
            continue
        found = _counted(facts, use.node)
        if found is None or found.number in seen:
            continue
        counted_from = list(lengths(facts, found.number))
        if counted_from and not all(
            measured(facts, each) and conversion.is_prepared_at(each, loaders) for each in counted_from
        ):
            seen.add(found.number)
            yield found


def renewed_too_late(
    facts: Facts, program: Program, units: Collection[Unit], prepared: set[ast.AST], stages: Stages
) -> Iterator[Refusal]:
    """Iterators over prepared loaders that are made anew after as many steps as one process has batches."""
    moments = Moments(facts, program, stages)
    for use in facts.calls:
        loop, taking = next(facts.tree(use.node).loops(use.node), None), asked(facts, use.node)
        if use.unit not in units or loop is None or taking is None or not taken(facts, use.node) & prepared:
            continue
        if len(use.node.args) > 1 or _is_caught(facts, use.node, loop):
            continue
        for branch in _renewing(facts, taking, loop):
            counted_from = list(lengths(facts, branch.test))
            if not all(measured(facts, each) and False not in moments.after(each) for each in counted_from):
                yield Refusal(
                    branch,
                    "MIG104",
                    f"{ast.unparse(taking)} is made anew by a number that is counted from the data: before that comes, "
                    "each process is through its share of the batches",
                    "count the batches by len() of the loader once that is prepared, or make it anew where it ends "
                    "(except StopIteration)",
                )


def _renewing(facts: Facts, taking: ast.expr, loop: ast.AST) -> Iterator[ast.If]:
    """The branches inside of a loop that make the iterator which its steps take batches from."""
    tree, target = facts.tree(loop), ast.unparse(taking)
    for binding in facts.bindings_in(facts.unit(loop)):
        if binding.target == target and next(tree.loops(binding.statement), None) is loop:
            above = takewhile(lambda node: node is not loop, tree.up(binding.statement))
            yield from (node for node in above if isinstance(node, ast.If))


def _counted(facts: Facts, call: ast.Call) -> Counted | None:
    tree, taking = facts.tree(call), asked(facts, call)
    loop = next(tree.loops(call), None)
    if not isinstance(loop, ast.For) or taking is None or _is_caught(facts, call, loop):
        return None
    number, loader = rounds(facts, loop.iter), _iterated(facts, taking, loop)
    return Counted(number, loader) if number is not None and loader is not None else None


def _iterated(facts: Facts, taking: ast.expr, loop: ast.For) -> ast.expr | None:
    """The loader of an iterator that is made anew each time before a loop, by `iter(loader)`, and nowhere else."""
    tree, target = facts.tree(loop), ast.unparse(taking)
    around = next(tree.loops(loop), None)
    given = [b.statement for b in facts.bindings_in(facts.unit(loop)) if b.target == target]
    loaders: dict[str, ast.expr] = {}
    for statement in given:
        made = statement.value if isinstance(statement, ast.Assign) else None
        if next(tree.loops(statement), None) is not around:
            return None
        if not isinstance(made, ast.Call) or "builtins.iter" not in facts.called(made) or not made.args:
            return None
        loaders[ast.unparse(made.args[0])] = made.args[0]
    one = next(iter(loaders.values()), None)
    return one if len(loaders) == 1 and isinstance(one, (ast.Name, ast.Attribute)) else None


def _is_caught(facts: Facts, call: ast.Call, loop: ast.AST) -> bool:
    """Whether the loop goes on, or ends, by itself where there is no further batch."""
    above = takewhile(lambda node: node is not loop, facts.tree(call).up(call))
    return any(isinstance(node, TRIES) and node.handlers for node in above)
