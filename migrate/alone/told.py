"""Code with numbers of the place in it: as the accelerator is asked for them, and as it reads on one process."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from migrate.alone.quantities import RANKS
from migrate.programs.values.place import Quantity, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from migrate.alone.world import World


def told(world: World, node: ast.stmt | ast.expr, *, comments: bool = False) -> str:
    """The source of some code that asks the accelerator, with the comments above it."""
    text = ast.unparse(_replaced(world, node, _asked))
    return "\n".join([*(above(world, node) if comments else ()), text])


def alike(world: World, counted: ast.expr, plain: ast.expr) -> bool | None:
    """Whether an expression is another one where there is one process; None: it holds no number of the place."""
    if not any(_alone(world, n) is not None for n in ast.walk(counted) if isinstance(n, ast.expr)):
        return None
    alone = _replaced(world, counted, _alone)
    return ast.unparse(_simple(alone)) == ast.unparse(plain)


def _asked(world: World, node: ast.expr) -> ast.expr | None:
    kind = world.quantity(node)
    if kind is None or number(node) is not None:
        return None
    kind = Quantity.WORLD_SIZE if kind is Quantity.DEVICES else kind
    return ast.parse(world.value(kind), mode="eval").body


def _alone(world: World, node: ast.expr) -> ast.expr | None:
    kind = world.quantity(node)
    if kind is None or number(node) is not None:
        return None
    return ast.Constant(0 if kind in RANKS else 1)


def _replaced(world: World, node: ast.AST, by: Callable[[World, ast.expr], ast.expr | None]) -> ast.AST:
    """A copy of some code, in which some expressions are others."""
    if isinstance(node, ast.expr) and (other := by(world, node)) is not None:
        return other
    return _copied(node, lambda part: _replaced(world, part, by))


def _copied(node: ast.AST, of_part: Callable[[ast.AST], ast.AST]) -> ast.AST:
    """A copy of a node, with what is made of its parts."""
    made = copy.copy(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            setattr(made, name, of_part(value))
        elif isinstance(value, list):
            setattr(made, name, [of_part(part) if isinstance(part, ast.AST) else part for part in value])
    return made


def _simple(node: ast.AST) -> ast.AST:
    """Without factors and divisors of one, and sums with zero; a whole number that is rounded is itself."""
    made = _copied(node, _simple)
    if isinstance(made, ast.BinOp):
        right, left = number(made.right), number(made.left)
        if isinstance(made.op, (ast.Mult, ast.FloorDiv)) and right == 1:
            return made.left
        if isinstance(made.op, ast.Mult) and left == 1:
            return made.right
        if isinstance(made.op, ast.Add) and 0 in (left, right):
            return made.left if right == 0 else made.right
    if isinstance(made, ast.Call) and ast.unparse(made.func) == "int" and len(made.args) == 1:
        inner = made.args[0]
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div) and number(inner.right) == 1:
            return inner.left
    return made


def above(world: World, node: ast.AST) -> list[str]:
    """The comments right above a statement."""
    lines = world.facts.unit(node).module.file.lines
    found: list[str] = []
    at = getattr(node, "lineno", 1) - 2
    while at >= 0 and lines[at].lstrip().startswith("#"):
        found.insert(0, lines[at].strip())
        at -= 1
    return found
