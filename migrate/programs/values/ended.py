"""What is only reached when some code is over for good: it stands below that, or below each call that leads there."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import line_of
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


def is_only_below(facts: Facts, node: ast.AST, ran: Iterable[ast.AST]) -> bool:
    """Whether a node is reached only below some others, in whatever functions they stand."""
    return _is_below(facts, node, _ends(facts, ran), frozenset())


def _is_below(facts: Facts, node: ast.AST, ends: Mapping[Unit, int], seen: frozenset[Unit]) -> bool:
    unit = facts.unit(node)
    if unit in ends:
        return line_of(node) > ends[unit]
    calls = facts.callers(unit) if isinstance(unit, Function) and unit not in seen else ()
    return bool(calls) and all(_is_below(facts, call.node, ends, seen | {unit}) for call in calls)


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
