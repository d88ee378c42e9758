"""What is only reached when some code is over for good: it stands below that, or below each call that leads there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import line_of
from migrate.analysis.units import Function
from migrate.programs.reach.callees import on_all_ways

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


def is_only_below(facts: Facts, node: ast.AST, ran: Iterable[ast.AST]) -> bool:
    """Whether a node is reached only below some others, in whatever functions they stand."""
    ends = _ends(facts, ran)

    def is_below(here: ast.AST) -> bool | None:
        unit = facts.unit(here)
        return line_of(here) > ends[unit] if unit in ends else None

    return on_all_ways(facts, node, is_below)


def _ends(facts: Facts, ran: Iterable[ast.AST]) -> dict[Unit, int]:
    """The last line of some code, and of all that leads to it, in each function; of the loops around that, of these."""
    found: dict[Unit, int] = {}
    waiting = list(ran)
    while waiting:
        node = waiting.pop()
        unit = facts.unit(node)
        if isinstance(unit, Function) and unit not in found:
            waiting += (call.node for call in facts.callers(unit))
        around = [node, facts.tree(node).statement(node), *facts.tree(node).loops(node)]
        found[unit] = max(found.get(unit, 0), *(getattr(each, "end_lineno", 0) for each in around))
    return found
