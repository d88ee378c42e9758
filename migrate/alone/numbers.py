"""Numbers of the place in sums: divided by, multiplied with, told."""

from __future__ import annotations

import ast
from copy import copy
from typing import TYPE_CHECKING

from migrate.alone.given import answer
from migrate.alone.world import VALUES
from migrate.programs.marker import ACCELERATOR
from migrate.programs.values.place import Quantity, number

if TYPE_CHECKING:
    from migrate.alone.pen import Pen
    from migrate.alone.scales import Scales
    from migrate.alone.world import World

_COUNT = f"{ACCELERATOR}.num_processes"
#: What people are told something with.
SHOWING = frozenset("print debug info warning warn error log".split())


def divides_by_size(world: World, scales: Scales, statement: ast.stmt) -> bool:
    """`total /= world_size` of what all have summed up, `batch_size //= world_size` of a loader."""
    return (
        isinstance(statement, ast.AugAssign)
        and isinstance(statement.op, (ast.Div, ast.FloorDiv))
        and world.is_size(statement.value)
        and (scales.is_shared(ast.unparse(statement.target)) or scales.is_reduced(statement.target))
    )


def defines_place(world: World, statement: ast.stmt) -> bool:
    """`args.world_size = ngpus * args.world_size`: a number of the place that is made of itself."""
    if not isinstance(statement, (ast.Assign, ast.AugAssign)):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    if len(targets) != 1 or not isinstance(targets[0], ast.Attribute):
        return False
    text = ast.unparse(targets[0])
    if isinstance(statement, ast.Assign) and not any(
        ast.unparse(inner) == text for inner in ast.walk(statement.value) if isinstance(inner, ast.Attribute)
    ):
        return False
    return world.gives_place(targets[0].attr)


def rewrite(world: World, scales: Scales, pen: Pen, node: ast.expr) -> list[ast.AST] | None:
    """Undo what the accelerator does itself; other numbers of the place are asked of the accelerator."""
    if (whole := undivided(world, node)) is not None and scales.goes(node, whole):
        pen.rewrite(node, "{it}", it=whole)
        return [whole]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and isinstance(node.right, ast.BoolOp):
        if world.truth(node.right) is False:  # `len(loader) + (distributed and ...)`
            pen.rewrite(node, "{it}", it=node.left)
            return [node.left]
    kind = _quantity(world, scales, node)
    if kind is not None and world.places.is_of_job(node):
        return []
    if kind is not None and kind in VALUES and number(node) is None:
        pen.rewrite(node, world.value(kind))
        return []
    if isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Name, ast.Attribute, ast.Call)):
        if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            return None
        if isinstance(node, ast.BoolOp) and any(map(is_written_out, node.values)):
            return None
        if (truth := world.truth(node)) is not None:
            pen.rewrite(node, f"{_COUNT} {'==' if truth else '>'} 1" if is_shown(world, node) else str(truth))
            return []
        if world.questions.stays(node):
            return []
        if (text := answer(world, node) or world.process(node)) is not None:
            pen.rewrite(node, text)
            return []
    return None


def _quantity(world: World, scales: Scales, node: ast.expr) -> Quantity | None:
    """Which number of the place it is: what divides a sum is the number of processes in it, and not that of GPUs."""
    kind = world.quantity(node)
    return Quantity.WORLD_SIZE if kind is Quantity.DEVICES and scales.divides_sum(node) else kind


def chosen(world: World, node: ast.IfExp) -> str | None:
    """`get_world_size() if is_initialized() else 1`, where something is made of it.

    Of what is only given a name, or given back, those who read it ask.
    """
    kind = world.quantity(node)
    is_handed_on = isinstance(world.facts.tree(node).parents.get(node), (ast.Assign, ast.AnnAssign, ast.Return))
    return None if is_handed_on or kind not in VALUES else world.value(kind)


def is_written_out(node: ast.expr) -> bool:
    """The `False` of `assert False and "unknown optimizer"`."""
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def is_shown(world: World, node: ast.expr) -> bool:
    """`logger.info("distributed: %s", rank != -1)`: what people are told is true of several processes, too."""
    for above in world.facts.tree(node).up(node):
        if isinstance(above, ast.Expr):
            call = above.value
            name = ast.unparse(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
            return name in SHOWING
        if isinstance(above, ast.stmt):
            return False
    return False


def undivided(world: World, node: ast.expr) -> ast.expr | None:
    """`x` of `x // n`, `int(x / n)`, `int((x + n - 1) / n)` and `x / n`, where n is the number of processes."""
    if isinstance(node, ast.Call) and world.facts.called(node) & {"builtins.int", "math.ceil", "math.floor"}:
        if len(node.args) == 1 and isinstance(node.args[0], ast.BinOp):
            return undivided(world, node.args[0])
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Div, ast.FloorDiv)):
        return None
    if not world.is_size(node.right):
        return None
    return _without_rounding(world, node.left)


def of_all(world: World, node: ast.expr) -> ast.expr:
    """A copy of the size of one process's batches without what divides it: that of the batches of all."""
    if (whole := undivided(world, node)) is not None:
        return of_all(world, whole)
    made = copy(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.expr):
            setattr(made, name, of_all(world, value))
        elif isinstance(value, list):
            setattr(made, name, [of_all(world, each) if isinstance(each, ast.expr) else each for each in value])
    return made


def _without_rounding(world: World, node: ast.expr) -> ast.expr:
    """`x` of `x + n - 1`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and number(node.right) == 1:
        inner = node.left
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Add) and world.is_size(inner.right):
            return inner.left
    return node
