"""Data sets that download themselves: one process must do it, and the others read what it has left.

`with accelerator.main_process_first():` stands around the constructor where the accelerator is at hand, else around
the call that leads there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.units import Function
from migrate.programs.conversion import reaches_model
from migrate.programs.values.fetches import is_download

if TYPE_CHECKING:
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion

_DEEPEST = 4


@dataclass(slots=True)
class Downloads:
    """Neighbouring statements that one process after the other runs, and calls where that is not possible."""

    in_turns: list[list[ast.stmt]] = field(default_factory=list)
    at_once: list[ast.Call] = field(default_factory=list)


def downloads(conversion: Conversion) -> Downloads:
    """The downloads of a program."""
    found = Downloads()
    statements: dict[ast.stmt, None] = {}
    shared = conversion.program.outsiders  # of another program, too: turns are taken at this one's calls
    for use in conversion.facts.calls:
        is_mine = use.unit.module in conversion.modules or use.unit in shared
        if is_mine and is_download(conversion.facts, use.node):
            places = _places(conversion, use.node, use.unit, _DEEPEST)
            if places:
                statements.update(dict.fromkeys(places))
            elif use.unit in conversion.units | conversion.access.early:  # others are of another program, or of none
                found.at_once.append(use.node)
    for statement in sorted(statements, key=lambda s: (conversion.facts.file(s).path, s.lineno)):
        block = conversion.facts.tree(statement).block(statement)
        last = found.in_turns[-1][-1] if found.in_turns else None
        if last in block and block.index(last) + 1 == block.index(statement):
            found.in_turns[-1].append(statement)
        else:
            found.in_turns.append([statement])
    found.in_turns = [run for run in found.in_turns if not has_turns(conversion, run)]
    return found


def has_turns(conversion: Conversion, run: list[ast.stmt]) -> bool:
    """Whether the program lets the processes in one after the other itself, by a barrier before and one behind."""
    block = conversion.facts.tree(run[0]).block(run[0])
    at = block.index(run[0])
    return any(map(_waits, block[:at])) and any(map(_waits, block[at + len(run) :]))


def _waits(statement: ast.stmt) -> bool:
    """`if rank != 0: barrier()`."""
    if not isinstance(statement, ast.If) or statement.orelse or len(statement.body) != 1:
        return False
    inner = statement.body[0]
    return (
        isinstance(inner, ast.Expr)
        and isinstance(inner.value, ast.Call)
        and isinstance(inner.value.func, ast.Attribute)
        and inner.value.func.attr in ("wait_for_everyone", "barrier")
    )


def _places(conversion: Conversion, node: ast.Call, unit: Unit, depth: int) -> list[ast.stmt]:
    """The statements to take turns at: where the accelerator is at hand, up the calls; empty: not everywhere."""
    statement = conversion.facts.tree(node).statement(node)
    if reaches_model(conversion, statement) or depth == 0:
        return []
    if conversion.access.has(unit) and _is_simple(statement):
        return [statement] if conversion.has_accelerator_at(statement) else []
    if not isinstance(unit, Function):
        return []
    calls = [call for call in conversion.facts.callers(unit) if call.caller in conversion.units]
    above = [_places(conversion, call.node, call.caller, depth - 1) for call in calls]
    if above and all(above):
        return [place for places in above for place in places]
    return [statement] if _is_simple(statement) and conversion.access.can_reach(node) else []


def _is_simple(statement: ast.stmt) -> bool:
    """Whether turns can be taken at a statement: it does not leave the function, and holds no others."""
    return isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr))
