"""What code beside the home meets of a loader that the home is given: prepare changes the names of the home alone.

`fit(model, loader)` prepares its own `loader`; that of the script stays what it was. One that an object holds, and that
the home finds there (`data.loader`), is prepared for all who ask the object for it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import LoopFact


def given(loaders: Iterable[Named]) -> list[Named]:
    """The loaders that a home finds in what it is handed."""
    return [each for each in loaders if each.is_given and each.module is None and each.unit is None]


def goes_over_raw(facts: Facts, loaders: Iterable[Named], inside: Container[Unit], loop: LoopFact) -> bool | None:
    """Whether a loop runs over a loader as it was `given` to the home, which reaches the units `inside`.

    None: it does at times, and at times over the prepared one.
    """
    mine = [named for named in given(loaders) if named.origins & loop.loaders]
    holders = frozenset().union(*(named.holders for named in mine))
    made = set().union(*(named.origins for named in mine))
    assert isinstance(loop.node, (ast.For, ast.AsyncFor))  # a `while` is none (`Loops.evaluation`)
    nodes = [n for n in ast.walk(loop.node.iter) if isinstance(n, (ast.Name, ast.Attribute))]
    held = {n for n in nodes if any(value.origin in holders for value in facts.values(n))}
    by_name = any(
        origins(facts.values(node), Role.LOADER) & made and not (isinstance(node, ast.Attribute) and node.value in held)
        for node in nodes
    )
    return None if by_name and (held or loop.unit in inside) else by_name
