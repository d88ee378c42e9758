"""A training loop that one caller hands a DataLoader, and another an object of the program's own that makes batches.

    class Pairs:                                    fit(model, DataLoader(data, batch_size=32))
        def __iter__(self):                         fit(model, Pairs(32))
            yield x, y

Each process has a share of the first and all of the second. So what such a loop adds up over its batches is right for
one of the two only, whether it is joined afterwards or not.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.units import Class
from migrate.programs.program import Refusal
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program


def at_times_no_loader(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Training loops that run over a loader, or over what is none."""
    for loop in program.training:
        if isinstance(loop.node, ast.While) or not loop.loaders:
            continue
        over = _named(facts, loop.node.iter)
        for name in sorted({cls.name for node in over for cls in _beside_loaders(facts, node)}):
            yield Refusal(
                loop.node,
                "MIG903",
                f"this loop runs over a DataLoader, or over {name}, which is none: only the batches of the first are "
                "shared out",
                "put its data into a torch.utils.data.DataLoader, too, or give it a loop of its own",
            )


def _named(facts: Facts, over: ast.expr) -> Iterator[ast.expr]:
    """The names in what a loop runs over, and in what those are given: `bar = tqdm(self.data)`."""
    named = [node for node in ast.walk(over) if isinstance(node, (ast.Name, ast.Attribute))]
    yield from named
    for given in (each for node in named for each in facts.once(Sources).given(node).expressions):
        yield from (node for node in ast.walk(given) if isinstance(node, (ast.Name, ast.Attribute)))


def _beside_loaders(facts: Facts, node: ast.expr) -> set[Class]:
    """The classes of what runs over itself, and over no loader, where a name may be a loader as well."""
    values = facts.values(node)
    if Role.LOADER not in roles(values):
        return set()
    own = {v: v.unit for v in values if v.role is Role.INSTANCE and isinstance(v.unit, Class)}
    return {cls for v, cls in own.items() if any(cls.lookup("__iter__")) and not facts.loaders(frozenset({v}))}
