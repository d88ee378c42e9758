"""Where a loss is divided by the number of micro-steps, and whether taking that out changes anything else."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.syntax import same
from migrate.programs.amp.switch import Stays

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


@dataclass(frozen=True, slots=True)
class Division:
    """Either a statement that goes away, or a quotient that gives way to what is divided."""

    statement: ast.stmt | None = None
    quotient: ast.BinOp | None = None


def division(facts: Facts, loop: ast.For, backward: ast.Call, steps: ast.expr) -> Division:
    """The only division of the loss that `backward` is called on.

    Raises:
        Stays: there is none, or what is divided is also used otherwise.
    """
    assert isinstance(backward.func, ast.Attribute)
    loss: ast.expr = backward.func.value
    if isinstance(loss, ast.Call) and isinstance(loss.func, ast.Attribute) and loss.func.attr == "scale":
        loss = loss.args[0]  # scaler.scale(loss)
    if (quotient := _quotient(loss, steps)) is not None:
        return Division(quotient=quotient)
    if not isinstance(loss, ast.Name):
        raise Stays(backward, "the loss is not divided by the number of micro-steps")
    found = [s for s in ast.walk(loop) if isinstance(s, (ast.Assign, ast.AugAssign)) and _divides(s, loss.id, steps)]
    if len(found) != 1 or found[0].lineno > backward.lineno:
        raise Stays(backward, "the loss is not divided by the number of micro-steps, once")
    _check_reads(facts, loop, loss, found[0])
    _check_always(facts, loop, found[0], steps)
    return _taken_out(found[0], steps)


def _quotient(node: ast.expr, steps: ast.expr) -> ast.BinOp | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and same(node.right, steps):
        return node
    return None


def _divides(statement: ast.Assign | ast.AugAssign, name: str, steps: ast.expr) -> bool:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    if not isinstance(target, ast.Name) or target.id != name:
        return False
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.op, ast.Div) and same(statement.value, steps)
    return _quotient(statement.value, steps) is not None


def _taken_out(statement: ast.Assign | ast.AugAssign, steps: ast.expr) -> Division:
    if isinstance(statement, ast.AugAssign):
        return Division(statement=statement)
    quotient = _quotient(statement.value, steps)
    assert quotient is not None
    if same(quotient.left, statement.targets[0]):
        return Division(statement=statement)
    return Division(quotient=quotient)


def _check_reads(facts: Facts, loop: ast.For, loss: ast.Name, divided: ast.stmt) -> None:
    """Nothing else sees the quotient: no sum, no print, nothing after the loop."""
    tree = facts.tree(loop)
    for node in ast.walk(tree.function(loop)):
        if not isinstance(node, ast.Name) or node.id != loss.id or not isinstance(node.ctx, ast.Load) or node is loss:
            continue
        if tree.in_block(node, loop.body) is None and node.lineno < loop.lineno:
            continue
        if node.lineno > divided.lineno and node.lineno != (divided.end_lineno or divided.lineno):
            raise Stays(node, f"{loss.id} is also used after it is divided")


def _check_always(facts: Facts, loop: ast.For, divided: ast.stmt, steps: ast.expr) -> None:
    """Each loss is divided; a test whether there are several micro-steps does not count: by one changes nothing."""
    for above in facts.tree(loop).up(divided):
        if above is loop:
            return
        if isinstance(above, ast.If) and ast.unparse(above.test) == f"{ast.unparse(steps)} > 1" and not above.orelse:
            continue
        if not isinstance(above, ast.With):
            raise Stays(divided, "not every loss is divided")
