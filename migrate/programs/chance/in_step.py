"""Seeded streams in which no process gets ahead of another: what is drawn of them after a training is alike.

    random.seed(1)
    for epoch in range(9):
        for x, y in loader: ...            # nothing here draws from the stream of `random`
        some = random.sample(rows, 100)    # so all processes draw the same

PyTorch's own stream is none of these: loaders and dropout draw from it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.analysis.known.data import SPLITS
from migrate.analysis.units import Function
from migrate.programs.chance.seeds import modules_of
from migrate.programs.chance.splits import EACH
from migrate.programs.reach.callees import reached
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.analysis.facts import Facts, Use
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

#: What runs once a batch, on all processes alike.
_PER_STEP = frozenset({"forward"})


def is_in_step(facts: Facts, loops: Loops, program: Program, call: ast.Call, unseeded: Collection[str]) -> bool:
    """Whether all processes are at one place of the stream that a call draws from."""
    libraries = libraries_of(facts, call)
    if len(libraries) != 1 or not libraries <= {"random", "numpy"} or not libraries.isdisjoint(unseeded):
        return False
    apart = reached(facts, (unit for unit in facts.functions if unit.name in EACH - _PER_STEP))
    if any(_hands_over(facts, unit) for unit in apart if isinstance(unit, Function)):
        return False
    within = {loop.node for loop in (*program.training, *loops.evaluation)}

    def is_apart(use: Use) -> bool:
        return use.unit in apart or not within.isdisjoint(loops.around(use.node, use.unit))

    modules = modules_of(facts, program)
    uses = (use for use in facts.calls_anywhere if use.unit.module in modules and use.node is not call)
    return not any(libraries & libraries_of(facts, use.node) and is_apart(use) for use in uses)


def libraries_of(facts: Facts, call: ast.Call) -> set[str]:
    """Whose streams a call may draw from."""
    names = called_by_name(facts, call)
    split = {SPLITS[name][0] for name in names if name in SPLITS}
    return split | {each for each in known.DRAWN if any(known.draws_from(each, name) for name in names)}


def _hands_over(facts: Facts, unit: Function) -> bool:
    """Whether a function that gets samples calls what it was given, `self.transform(x)`: that may draw anything."""
    itself = unit.parameter_names[:1]
    for node in facts.own(unit):
        if isinstance(node, ast.Call) and not called_by_name(facts, node) and not facts.targets(node):
            func = node.func
            owner = func.value if isinstance(func, ast.Attribute) else None
            if isinstance(func, ast.Name) or (isinstance(owner, ast.Name) and (owner.id,) == tuple(itself)):
                return True
    return False
