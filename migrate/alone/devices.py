"""Ranks that say which GPU: one process has one device."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.quantities import RANKS
from migrate.analysis.known.devices import SET_DEVICE
from migrate.analysis.roles import Role, roles
from migrate.edits.parts import RECEIVER

if TYPE_CHECKING:
    from migrate.alone.pen import Pen
    from migrate.alone.world import World


def sets_device(world: World, statement: ast.stmt) -> bool:
    """`torch.cuda.set_device(local_rank)`."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    call = statement.value
    return bool(world.facts.called(call) & SET_DEVICE) and any(names_rank(world, given) for given in call.args)


def names_rank(world: World, node: ast.AST) -> bool:
    """Whether there is a rank in an expression."""
    return any(world.quantity(inner) in RANKS for inner in ast.walk(node) if isinstance(inner, ast.expr))


def rewrite(world: World, pen: Pen, node: ast.expr) -> list[ast.AST] | None:
    """A device that is named by a rank becomes the device."""
    if isinstance(node, ast.Call):
        return _call(world, pen, node)
    if _is_text(node) and names_rank(world, node) and (kind := _kind(world, node)) is not None:
        pen.rewrite(node, kind)
        return []
    if isinstance(node, ast.Dict) and _maps_devices(world, node):
        pen.rewrite(node, '"cpu"')
        return []
    return None


def _call(world: World, pen: Pen, node: ast.Call) -> list[ast.AST] | None:
    if (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in ("to", "cuda")
        and not world.facts.names(node.func.value)
    ):
        return _move(world, pen, node)
    if "torch.device" in world.facts.called(node) and node.args:
        if (len(node.args) == 1 and world.quantity(node.args[0]) in RANKS) or (
            len(node.args) == 2 and names_rank(world, node.args[1])
        ):
            pen.rewrite(node, f'{ast.unparse(node.func)}("cuda")')
            return []
    if _is_text(node) and names_rank(world, node) and (kind := _kind(world, node)) is not None:
        pen.rewrite(node, kind)
        return []
    for keyword in node.keywords:
        if keyword.arg in ("device", "map_location") and world.quantity(keyword.value) in RANKS:
            pen.rewrite(keyword.value, '"cuda"')
            rest = [*node.args, *(k for k in node.keywords if k is not keyword)]
            return [node.func, *rest]
    return None


def _move(world: World, pen: Pen, node: ast.Call) -> list[ast.AST] | None:
    """`x.to(rank)`, `x.cuda(rank, non_blocking=True)` become `x.cuda()`."""
    func = node.func
    assert isinstance(func, ast.Attribute)
    given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "device")]
    if not any(world.quantity(argument) in RANKS for argument in given):
        return None
    rest = [ast.unparse(k) for k in node.keywords if k.arg != "device"]
    if func.attr == "to" and (len(node.args) > 1 or any(k.arg not in _OF_CUDA for k in node.keywords)):
        pen.rewrite(node, f'{{it}}.to("cuda", {", ".join([*map(ast.unparse, node.args[1:]), *rest])})', it=RECEIVER)
    else:
        pen.rewrite(node, f"{{it}}.cuda({', '.join(rest)})", it=RECEIVER)
    return [func.value]


#: What `cuda()` takes of what `to()` does.
_OF_CUDA = frozenset({"device", "non_blocking"})


def _is_text(node: ast.expr) -> bool:
    """`f"cuda:{x}"`, `"cuda:%d" % x`, `"cuda:{}".format(x)`, `"cuda:" + str(x)`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr == "format"
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mod, ast.Add)))


def _starts_with_cuda(node: ast.expr) -> bool:
    if isinstance(node, ast.JoinedStr):
        first: ast.expr | None = node.values[0] if node.values else None
    elif isinstance(node, ast.BinOp):
        first = node.left
    else:
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Attribute)
        first = node.func.value
    return isinstance(first, ast.Constant) and isinstance(first.value, str) and first.value.startswith("cuda:")


def _kind(world: World, node: ast.expr) -> str | None:
    """What to write for a device that a text names with a rank: `"cuda"`, or what the machine has."""
    if _starts_with_cuda(node):
        return '"cuda"'
    if isinstance(node, ast.JoinedStr) and len(node.values) == 3 and isinstance(node.values[0], ast.FormattedValue):
        first, between = node.values[0].value, node.values[1]
        is_index = isinstance(between, ast.Constant) and between.value == ":"
        if is_index and roles(world.facts.values(first)) == {Role.DEVICE}:
            return ast.unparse(first)
    return None


def _maps_devices(world: World, node: ast.Dict) -> bool:
    """`map_location={"cuda:0": f"cuda:{rank}"}`."""
    return bool(node.values) and all(
        _is_text(value) and _starts_with_cuda(value) and names_rank(world, value) for value in node.values
    )
