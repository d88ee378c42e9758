"""Layers that share their statistics over the processes, in a branch that goes away with its test for several of them.

    if args.distributed:                              ->   if accelerator.num_processes > 1 and ...:
        model = SyncBatchNorm.convert_sync_batchnorm(model)    model = SyncBatchNorm.convert_sync_batchnorm(model)
        model = DistributedDataParallel(model)

Without them each process would normalize by its own share of the batch. PyTorch has none on the CPU.
"""

from __future__ import annotations

import ast
from textwrap import indent
from typing import TYPE_CHECKING

from migrate.alone.numbers import SHOWING
from migrate.alone.told import told
from migrate.alone.ways import certain
from migrate.analysis.known.distributed import SYNCHRONIZING
from migrate.programs.marker import ACCELERATOR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.world import World

_SEVERAL = (f"{ACCELERATOR}.num_processes > 1", f"{ACCELERATOR}.device.type != 'cpu'")


def kept(world: World, branch: ast.If, stays: list[ast.stmt]) -> Iterator[str]:
    """What of a decided branch goes on making layers that share their statistics."""
    test = _test(world, [] if stays is branch.body else _options(world, branch.test))
    for statement in branch.orelse if stays is branch.body else branch.body:
        for text in _converting(world, statement):
            yield f"if {test}:\n{indent(text, '    ')}"


def stays(world: World, branch: ast.If) -> str | None:
    """What a branch asks from now on that makes such layers and does nothing else, and says where it does not."""
    if not branch.orelse or certain(world, branch) is not branch.orelse:
        return None
    converts = all(any(True for _ in _converting(world, statement)) for statement in branch.body)
    return _test(world, _options(world, branch.test)) if converts and all(map(_only_says, branch.orelse)) else None


def _only_says(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.If):
        return all(map(_only_says, (*statement.body, *statement.orelse)))
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in SHOWING


def _test(world: World, options: list[ast.expr]) -> str:
    asked = (ast.parse(told(world, part), mode="eval").body for part in options)
    parts = dict.fromkeys((*_SEVERAL, *map(ast.unparse, asked)))
    return ast.unparse(ast.BoolOp(ast.And(), [ast.parse(text, mode="eval").body for text in parts]))


def _options(world: World, test: ast.expr) -> list[ast.expr]:
    """What else is asked beside several processes: `args.sync_bn` of `args.distributed and args.sync_bn`."""
    if not isinstance(test, ast.BoolOp) or not isinstance(test.op, ast.And):
        return []
    return [part for part in test.values if world.truth(part) is None]


def _converting(world: World, statement: ast.stmt) -> Iterator[str]:
    """`model = convert_sync_batchnorm(model)`, also inside of a wrapper, and where an option asks for it."""
    if isinstance(statement, ast.If) and not statement.orelse:
        inner = [text for each in statement.body for text in _converting(world, each)]
        if inner:
            yield f"if {told(world, statement.test)}:\n" + "\n".join(indent(text, "    ") for text in inner)
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = ast.unparse(statement.targets[0])
        for node in ast.walk(statement.value):
            is_converting = isinstance(node, ast.Call) and world.facts.called(node) & SYNCHRONIZING
            if is_converting and isinstance(node, ast.Call) and node.args and ast.unparse(node.args[0]) == target:
                yield f"{target} = {told(world, node)}"
