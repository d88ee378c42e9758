"""Where a program asks which process it is only to show something: a progress bar, or a line, of one process."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from migrate.alone.quantities import RANKS
from migrate.analysis.known.output import PRINT
from migrate.analysis.known.progress import BARS, RANGE_BARS
from migrate.analysis.syntax import loads, same
from migrate.programs.values.handed_as import handed_as

if TYPE_CHECKING:
    from migrate.alone.world import World
    from migrate.analysis.units import Function

#: What a bar is told of how it is shown.
_SHOWING = frozenset({"disable", "position", "desc", "leave"})


def is_only_shown(world: World, node: ast.expr) -> bool:
    """Whether an expression only says what is shown, here or in the functions of the project that are handed it."""
    if _is_shown(world, node):
        return True
    facts = world.facts
    calls = [above for above in itertools.islice(facts.tree(node).up(node), 2) if isinstance(above, ast.Call)]
    targets = [(call, unit) for call in calls[:1] for unit in facts.targets(call)]
    handed = [(unit, name) for call, unit in targets for name in handed_as(call, unit, node)]
    return bool(handed) and len(handed) == len(targets) and all(_is_shown_there(world, *each) for each in handed)


def _is_shown_there(world: World, unit: Function, name: str) -> bool:
    """Whether all that a function does with a parameter, which holds a rank, is to say what is shown."""
    return all(world.quantity(each) in RANKS and _is_shown(world, each) for each in loads(unit.node, name))


def _is_shown(world: World, node: ast.expr) -> bool:
    """Whether a part of an expression only says what is shown: `tqdm(rows, disable=rank != 0)`."""
    inner: ast.AST = node
    for above in world.facts.tree(node).up(node):
        if isinstance(above, ast.Call) and isinstance(inner, ast.keyword):
            if inner.arg in _SHOWING and _is_bar(world, above):
                return True
        elif isinstance(above, ast.IfExp) and inner is above.test:
            return _is_around(world, above.body, above.orelse) or _is_around(world, above.orelse, above.body)
        elif isinstance(above, ast.If) and inner is above.test:
            return not above.orelse and all(_shows(world, statement) for statement in above.body)
        inner = above
    return False


def _shows(world: World, statement: ast.stmt) -> bool:
    """`print(...)`, `rows = tqdm(rows)`."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return world.facts.called(statement.value) == {PRINT}
    is_one = isinstance(statement, ast.Assign) and len(statement.targets) == 1
    return isinstance(statement, ast.Assign) and is_one and _is_around(world, statement.value, statement.targets[0])


def _is_around(world: World, bar: ast.expr, plain: ast.expr) -> bool:
    """Whether an expression is a bar around another one."""
    return isinstance(bar, ast.Call) and _is_bar(world, bar) and bool(bar.args) and same(bar.args[0], plain)


def _is_bar(world: World, call: ast.Call) -> bool:
    return bool(world.facts.called(call) & (BARS | RANGE_BARS))
