"""What a function gives on the main process, and nothing on the others, where all of them go on with it.

`if is_main_process(): info = metric.evaluate()`, `else: info = None`, in an evaluation that a script for one process
calls, too: there nobody asks which process it is, and `info[1]` breaks on every other one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_none
from migrate.analysis.units import Function
from migrate.programs.processes.branches import Branches, Side
from migrate.programs.program import Refusal
from migrate.programs.reach.outsiders import units_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.processes.branches import Branch
    from migrate.programs.program import Program

_MAIN = frozenset({Side.MAIN, Side.LOCAL_MAIN})
_OTHERS = frozenset({Side.OTHERS, Side.LOCAL_OTHERS})


def gaps(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Where all processes read what only one of them was given."""
    if program.home is None:
        return
    branches = facts.once(Branches)
    units = units_of(facts, program)
    for branch in branches.all:
        function = branch.unit
        if not isinstance(branch.node, ast.If) or not isinstance(function, Function) or function not in units:
            continue
        for name in _one_sided(branch, branch.node):
            if (place := _place(facts, function, name)) is not None:
                yield from _read_by_all(facts, branches, function, place)


def _one_sided(branch: Branch, node: ast.If) -> list[str]:
    """The names that the main process gives a value in a branch, and the others None."""
    if any(meaning.holds in _MAIN and meaning.fails in _OTHERS for meaning in branch.meanings):
        full, empty = node.body, node.orelse
    elif any(meaning.holds in _OTHERS and meaning.fails in _MAIN for meaning in branch.meanings):
        full, empty = node.orelse, node.body
    else:
        return []
    nothing = {name for name, is_none in _assigned(empty) if is_none}
    return [name for name, _ in _assigned(full) if name in nothing]


def _assigned(block: list[ast.stmt]) -> Iterator[tuple[str, bool]]:
    for statement in block:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            if isinstance(statement.targets[0], ast.Name):
                yield statement.targets[0].id, is_none(statement.value)


def _place(facts: Facts, function: Function, name: str) -> int | None:
    """Where a name stands in what a function gives back (-1: it is all of it); None: it gives back other things."""
    given = [node.value for node in facts.own(function) if isinstance(node, ast.Return)]
    if len(given) != 1 or given[0] is None:
        return None
    parts = given[0].elts if isinstance(given[0], ast.Tuple) else [given[0]]
    names = [part.id if isinstance(part, ast.Name) else "" for part in parts]
    if name not in names:
        return None
    return names.index(name) if isinstance(given[0], ast.Tuple) else -1


def _target(facts: Facts, call: ast.Call, place: int) -> str | None:
    """The name that a caller gives to it."""
    statement = facts.tree(call).parents[call]
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if place >= 0:
        if not isinstance(target, ast.Tuple) or place >= len(target.elts):
            return None
        target = target.elts[place]
    return target.id if isinstance(target, ast.Name) else None


def _read_by_all(facts: Facts, branches: Branches, function: Function, place: int) -> Iterator[Refusal]:
    for call in facts.callers(function):
        target = _target(facts, call.node, place)
        if target is None or branches.around(call.node) & _MAIN:
            continue
        for node in facts.own(call.caller):
            if not isinstance(node, (ast.Subscript, ast.BinOp)) or not _reads(node, target):
                continue
            if not branches.around(node) & _MAIN and not _is_asked_for(facts, node, target):
                yield Refusal(
                    node,
                    "MIG113",
                    f"{function.name}() gives {target} on the main process alone, and all processes read it here",
                    "ask for the main process here, too, or let the function give it to all",
                )
                break


def _reads(node: ast.Subscript | ast.BinOp, target: str) -> bool:
    parts = [node.value] if isinstance(node, ast.Subscript) else [node.left, node.right]
    return any(ast.unparse(part) == target for part in parts)


def _is_asked_for(facts: Facts, node: ast.AST, target: str) -> bool:
    """Whether a test asks for the value first: `if info is not None:`."""
    return any(
        isinstance(above, (ast.If, ast.IfExp)) and target in ast.unparse(above.test)
        for above in facts.tree(node).up(node)
    )
