"""What code comes to by its calls."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


def reached(facts: Facts, starts: Iterable[Unit]) -> set[Unit]:
    """Some units, and the functions of the project that their calls lead to, directly or not."""
    found: set[Unit] = set()
    waiting: list[Unit] = [*starts]
    while waiting:
        unit = waiting.pop()
        if unit not in found:
            found.add(unit)
            waiting += [
                target for node in facts.own(unit) if isinstance(node, ast.Call) for target in facts.targets(node)
            ]
    return found
