"""Branches on several processes are folded away; branches on which process this is ask the accelerator."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.numbers import is_written_out
from migrate.alone.quantities import RANKS
from migrate.alone.ways import certain
from migrate.analysis.syntax import is_main_guard
from migrate.edits.parts import BODY, ORELSE
from migrate.programs.marker import ACCELERATOR

if TYPE_CHECKING:
    from migrate.alone.pen import Pen
    from migrate.alone.world import World


def fold(world: World, pen: Pen, statement: ast.If) -> list[ast.stmt] | None:
    """Fold an `if` that is decided; the statements that stay, or None if it is not decided."""
    kept = certain(world, statement)
    if kept is None:
        return None
    if not kept:
        pen.remove(statement)
    else:
        pen.fold(statement, "body" if kept is statement.body else "orelse")
    return kept


def demand(world: World, pen: Pen, statement: ast.Assert) -> bool:
    """Whether an `assert` about the processes was seen to.

    That there are several: under an option, which may go on to need them, it asks how many there are. Everywhere else
    it goes, and so does one that this is the main process: all may come to it, where an evaluation is shared out.
    """
    if (asked := world.process(statement.test)) is not None and not asked.startswith("not "):
        pen.remove(statement)
        return True
    truth = world.truth(statement.test)
    if truth is None or any(isinstance(n, ast.expr) and is_written_out(n) for n in ast.walk(statement.test)):
        return False
    under = any(
        isinstance(above, ast.If) and not is_main_guard(above) for above in world.facts.tree(statement).up(statement)
    )
    if truth or not under or not asks_only_for_several(world, statement.test):
        pen.remove(statement)
    else:
        pen.rewrite(statement.test, f"{ACCELERATOR}.num_processes > 1")
    return True


def choose(world: World, pen: Pen, node: ast.IfExp) -> ast.expr | None:
    """Replace `a if distributed else b` by one of the two, which is given back."""
    truth = world.truth(node.test)
    if truth is None:
        return None
    pen.rewrite(node, "{it}", it=BODY if truth else ORELSE)
    return node.body if truth else node.orelse


def asks_only_for_several(world: World, test: ast.expr) -> bool:
    """Whether a test, of a branch that stays, asks for nothing but whether there are several processes."""
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    return all(world.truth_alone(part) is not None for part in parts)


def ask(world: World, pen: Pen, test: ast.expr) -> list[ast.expr]:
    """Make the questions in a test those to the accelerator; what is left of it to be looked at is given back."""
    if world.questions.stays(test):
        return []
    if (text := world.process(test)) is not None:
        pen.rewrite(test, text)
        return []
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return ask(world, pen, test.operand)
    if isinstance(test, ast.BoolOp):
        return _ask_parts(world, pen, test)
    if isinstance(test, (ast.Name, ast.Attribute)) and (truth := _of_number(world, test)):
        pen.rewrite(test, truth)
        return []
    return [test]


def _of_number(world: World, test: ast.expr) -> str | None:
    """`if rank:`, a number that is asked for its truth."""
    kind = world.quantity(test)
    return f"not {world.first(kind)}" if kind is not None and kind in RANKS else None


def _ask_parts(world: World, pen: Pen, test: ast.BoolOp) -> list[ast.expr]:
    """The parts of an `and` or `or` that are not decided, and the accelerator's question once."""
    kept: list[ast.expr] = []
    seen: set[str] = set()
    for value in test.values:
        text = world.process(value) if not world.questions.stays(value) else None
        if (world.truth(value) is not None and not is_written_out(value)) or text in seen:
            continue
        kept.append(value)
        seen |= {text} if text is not None else set()
    if len(kept) < len(test.values):
        word = " and " if isinstance(test.op, ast.And) else " or "
        holes = {f"part{number}": value for number, value in enumerate(kept)}
        pen.rewrite(test, word.join(f"{{{name}}}" for name in holes), **holes)
    return [left for value in kept for left in ask(world, pen, value)]
