"""Loops that take a number of batches from an iterator, one by one: `for step in range(steps): batch = next(batches)`.

Where the iterator is made anew above the loop, and that number is counted from the data (`steps = len(data) // 64`), or
is another one than the length of the share, a process would ask for more batches than its share of the loader has. So
it would where the iterator is made anew by such a number, inside of the loop: `if step % steps == 0: batches =
iter(loader)`.
"""

from __future__ import annotations

import ast
from itertools import takewhile
from typing import TYPE_CHECKING

from migrate.programs.program import Refusal
from migrate.programs.values.cut import counted_take, has_length, is_caught
from migrate.programs.values.lengths import Moments, measured
from migrate.programs.values.rounds import lengths
from migrate.programs.values.takes import asked, taken

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion
    from migrate.programs.program import Program
    from migrate.programs.stages import Stages


def counted(conversion: Conversion) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    """The numbers by which loops may ask for more than a process's share of prepared loaders, with those loaders."""
    facts, found = conversion.facts, dict[ast.expr, list[ast.expr]]()
    for use in conversion.uses:
        loaders = taken(facts, use.node) & conversion.loader_origins
        if not loaders or len(use.node.args) > 1:  # next(batches, None) knows what comes after the last
            continue
        take = counted_take(facts, use.node)
        if take is not None and _may_ask_for_more(conversion, take.number, loaders):
            others = found.setdefault(take.number, [])
            if ast.unparse(take.loader) not in map(ast.unparse, others):
                others.append(take.loader)
    yield from found.items()


def _may_ask_for_more(conversion: Conversion, number: ast.expr, loaders: set[ast.AST]) -> bool:
    """Whether a number is no length of these loaders that is measured once they are prepared."""
    facts = conversion.facts
    if counted_from := list(lengths(facts, number)):
        return not all(measured(facts, each) and conversion.is_prepared_at(each, loaders) for each in counted_from)
    return all(has_length(facts, loader) for loader in loaders)


def renewed_too_late(
    facts: Facts, program: Program, units: Collection[Unit], prepared: set[ast.AST], stages: Stages
) -> Iterator[Refusal]:
    """Iterators over prepared loaders that are made anew after as many steps as one process has batches."""
    moments = Moments(facts, program, stages)
    for use in facts.calls:
        loop, taking = next(facts.tree(use.node).loops(use.node), None), asked(facts, use.node)
        if use.unit not in units or loop is None or taking is None or not taken(facts, use.node) & prepared:
            continue
        if len(use.node.args) > 1 or is_caught(facts, use.node, loop):
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
