"""Which way through a branch stays where one process runs the program, whether that leaves, and what tests join to."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import SAMPLERS
from migrate.analysis.syntax import gives_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from migrate.alone.world import World


def ends(world: World, block: list[ast.stmt]) -> bool:
    """Whether nothing after a block runs."""
    last = block[-1] if block else None
    if isinstance(last, ast.If):
        kept = certain(world, last)
        return kept is not None and ends(world, kept)
    return isinstance(last, (ast.Return, ast.Raise))


def certain(world: World, statement: ast.If) -> list[ast.stmt] | None:
    """The statements of a decided `if` that stay; what the program itself has switched off (`if False:`) is its own.

    But where it has switched several processes on (`if True:  # args.distributed`), that is no question any more.
    """
    truth = world.truth(statement.test)
    if truth is None or (isinstance(statement.test, ast.Constant) and not _shares_out(world, statement, truth)):
        return None
    kept, other = (statement.body, statement.orelse) if truth else (statement.orelse, statement.body)
    return other if gives_up(kept) and not gives_up(other) else kept


def _shares_out(world: World, statement: ast.If, truth: bool) -> bool:
    """Whether what runs of a switched branch deals the data out, and not in a branch inside that is decided itself."""
    waiting: list[ast.AST] = [*(statement.body if truth else statement.orelse)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call) and world.facts.called(node) & SAMPLERS:
            return True
        if not isinstance(node, ast.If) or world.truth(node.test) is None:
            waiting += ast.iter_child_nodes(node)
    return False


def joined(test: ast.BoolOp, truth: Callable[[ast.expr], bool | None]) -> bool | None:
    """What an `and` or `or` says, by what its parts say; None: it may say either."""
    parts = [truth(value) for value in test.values]
    decisive = isinstance(test.op, ast.Or)
    if decisive in parts:
        return decisive
    return None if None in parts else not decisive


def gone(world: World, branch: ast.If) -> list[ast.stmt]:
    """The statements that go away with a decided branch."""
    kept = certain(world, branch)
    if kept is None:
        return []
    return branch.orelse if kept is branch.body else branch.body
