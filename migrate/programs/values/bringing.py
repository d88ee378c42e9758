"""What fetches files or unpacks them, whether they are there or not: each process would write them under the others.

Where the program asks first whether they are there, one process after the other comes to it (`output/caches.py`).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.syntax import jumps
from migrate.analysis.units import Function
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_DEEPEST = 4


def brings(facts: Facts, call: ast.Call) -> bool:
    """Whether a call does, as a statement of its own: `archive.extractall(folder)`."""
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in output.UNPACKS and not facts.targets(call)
    if not is_method and not facts.called(call) & output.BRINGS:
        return False
    return isinstance(facts.tree(call).parents[call], ast.Expr) and not _is_for_missing(
        facts, call, facts.unit(call), _DEEPEST
    )


def _is_for_missing(facts: Facts, node: ast.AST, unit: Unit, depth: int) -> bool:
    """Whether a branch leads to a node, here or in what calls this, that asks whether something is there."""
    tree = facts.tree(node)
    around = [above for above in tree.up(node) if isinstance(above, ast.If)]
    if isinstance(unit, Function):
        left = (each for each in facts.own(unit) if isinstance(each, ast.If) and any(jumps(each.body)))
        around += [each for each in left if each.lineno < getattr(node, "lineno", 0)]
    if any(_asks(facts, branch.test) for branch in around):
        return True
    calls = facts.callers(unit) if isinstance(unit, Function) and depth else ()
    return any(_is_for_missing(facts, call.node, call.caller, depth - 1) for call in calls)


def _asks(facts: Facts, test: ast.expr) -> bool:
    calls = [node for node in ast.walk(test) if isinstance(node, ast.Call)]
    units = reached(facts, (target for call in calls for target in facts.targets(call)))
    inner = (node for unit in units for node in facts.own(unit) if isinstance(node, ast.Call))
    return any(
        facts.called(call) & output.EXISTS
        or (isinstance(call.func, ast.Attribute) and call.func.attr in output.EXISTS_ITSELF)
        for call in (*calls, *inner)
    )
