"""What functions give back beside something else, and is gone: `return loader, sampler`.

The sampler is not there any more, or is None always. So the function gives back what is left, and its callers take
that. Who still reads what they took is seen afterwards, as for any other name that is gone.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.nothing import reads_of_none
from migrate.analysis.syntax import own_nodes

if TYPE_CHECKING:
    from migrate.alone.pen import Pen
    from migrate.alone.uses import Uses

_LAZY = (ast.Yield, ast.YieldFrom)


def elements(before: Uses, now: Uses, pen: Pen) -> bool:
    """Whether a function was made to give back less than it did."""
    gone = {read for *_, read in now.orphans(before)}
    empty = {read for _, reads in reads_of_none(before, now) for read in reads}
    for name, node in now.functions() if gone or empty else ():
        given = _returned(node)
        places = enumerate(zip(*(parts.elts for parts in given), strict=True))
        at = next((place for place, parts in places if gone | empty >= set(parts)), None)
        takers = _takers(now, name, len(given[0].elts)) if at is not None and not node.decorator_list else []
        if at is None or not takers:
            continue
        for parts in (*given, *(taker.targets[0] for taker in takers)):
            assert isinstance(parts, ast.Tuple)
            _shorten(pen, parts, at)
        if not gone.issuperset(parts.elts[at] for parts in given):
            _leave_none(now, pen, takers, at)
        return True
    return False


def _returned(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Tuple]:
    """The tuples of several parts that a function gives back, of one length; empty: it gives back something else."""
    inner = list(own_nodes(node))
    values = [each.value for each in inner if isinstance(each, ast.Return)]
    found = [value for value in values if isinstance(value, ast.Tuple) and len(value.elts) > 1]
    is_plain = not any(isinstance(part, ast.Starred) for value in found for part in value.elts)
    is_one = len(found) == len(values) and len({len(value.elts) for value in found}) == 1
    return found if is_one and is_plain and not any(isinstance(each, _LAZY) for each in inner) else []


def _takers(now: Uses, name: str, length: int) -> list[ast.Assign]:
    """The statements `a, b = f()` that the calls of a function are; empty: some calls are something else."""
    calls = now.calls_of(name) or []
    found = [statement for call in calls if isinstance(statement := now.statement_of(call), ast.Assign)]
    is_all = len(found) == len(calls) and all(_unpacks(statement, length) for statement in found)
    return found if is_all else []


def _unpacks(statement: ast.Assign, length: int) -> bool:
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Tuple) or len(target.elts) != length:
        return False
    return all(isinstance(part, (ast.Name, ast.Attribute)) for part in target.elts)


def _shorten(pen: Pen, parts: ast.Tuple, at: int) -> None:
    left = {f"part{number}": part for number, part in enumerate(parts.elts) if number != at}
    pen.rewrite(parts, ", ".join(f"{{{name}}}" for name in left), **left)


def _leave_none(now: Uses, pen: Pen, takers: list[ast.Assign], at: int) -> None:
    """What is still asked whether it is None goes on being that: `sampler = None`."""
    trees = [tree for _, _, tree in now.scopes()]
    for taker in takers:
        target = taker.targets[0]
        assert isinstance(target, ast.Tuple)
        dropped = target.elts[at]
        around = next((tree for tree in trees if taker in own_nodes(tree)), None)
        if not isinstance(dropped, ast.Name) or around is None or now.reads(around, dropped.id):
            pen.after(taker, f"{ast.unparse(dropped)} = None")
