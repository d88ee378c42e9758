"""Looks at a loader between where it is made and the first training: `x, y = next(iter(loader))`, `print(len(loader))`.

Where a loader is prepared by what makes it, for functions that are called below, it is prepared below such looks: they
meet it as it was, with all of its rows.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS, is_stored, line_of, walk
from migrate.analysis.units import is_local
from migrate.programs.reach.callees import reached
from migrate.programs.values.kept import uses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

#: Attributes that a prepared loader has, too.
DATA = frozenset({"dataset", "batch_size"})
_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
_AROUND = frozenset({"builtins.enumerate", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm"})  # of what is run over


def below_looks(facts: Facts, loops: Loops, named: Named, entry: ast.AST) -> Named:
    """A loader with the last statement above `entry` that looks at it, where all that reads it by then only looks."""
    made, tree = named.statements[-1], facts.tree(entry)
    block = tree.block(made)
    entering = tree.in_block(entry, block)
    if named.call is not None or facts.unit(made) is not facts.unit(entry) or entering is None:
        return named
    run = [each for each in block[block.index(made) + 1 :] if not isinstance(each, _DEFINITIONS)]
    above = [each for each in run if line_of(each) < line_of(entry) and each is not entering]
    looking = [each for each in above if any(_reads(each, named.target))]
    if not all(_is_look(facts, loops, read) for each in looking for read in _reads(each, named.target)):
        return named
    if any(reads_global(facts, node, named) for each in above for node in walk(each) if isinstance(node, ast.Call)):
        return named
    return replace(named, statements=(*named.statements, *looking[-1:]))


def is_first_look(facts: Facts, program: Program, node: ast.AST, made: set[ast.AST]) -> bool:
    """Whether code stands above where a loader is prepared that is made in the same unit, and not at home."""
    unit = facts.unit(node)
    return any(
        named.unit is unit and len(named.statements) > 1 and line_of(node) <= (named.statements[-1].end_lineno or 0)
        for named in program.loaders
        if named.origins & made
    )


def reads_global(facts: Facts, call: ast.Call, named: Named) -> bool:
    """Whether a call leads to a function that finds a loader in its module."""
    return any(
        isinstance(node, ast.Name) and node.id == named.target and not is_local(unit, node.id)
        for unit in reached(facts, facts.targets(call))
        if unit.module is named.unit
        for node in facts.own(unit)
    )


def _reads(statement: ast.stmt, target: str) -> Iterator[ast.expr]:
    return (use for use in uses(statement, target) if not is_stored(use))


def _is_look(facts: Facts, loops: Loops, read: ast.expr) -> bool:
    """`next(iter(loader))`, `len(loader)`, `loader.dataset`, `for x, y in loader:` without a model."""
    parents = facts.tree(read).parents
    above = parents[read]
    if isinstance(above, ast.Attribute):
        return above.attr in DATA
    if isinstance(above, ast.Call) and facts.called(above) & _AROUND:
        read, above = above, parents[above]
    if isinstance(above, ast.For):
        return above.iter is read and not loops.calls_model(above) and not loops.trains(above)
    if not isinstance(above, ast.Call) or read not in above.args:
        return False
    if "builtins.len" in facts.called(above):
        return True
    outer = parents[above]
    is_begun = "builtins.iter" in facts.called(above)
    return is_begun and isinstance(outer, ast.Call) and "builtins.next" in facts.called(outer)
