"""What a clock, the system or a draw gives each process of its own, and what is decided by that over a loader.

`if time.time() - start > budget: break`: one process leaves, and the others wait for it in backward for ever. So it is
with a flag that a signal sets, or a handler (`except ValueError: failed = True`), and with `if random.random() < 0.1:
continue`: even where all are seeded alike, each has other samples, for which the data set may draw more, or less.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.programs.processes.asked import sameness_of
from migrate.programs.processes.junctions import junctions
from migrate.programs.processes.parting import AT_ANY_TIME, asked_files
from migrate.programs.program import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program

    Own = ast.expr | ast.ExceptHandler


def deciding(facts: Facts, loops: Loops, program: Program, loop: LoopFact) -> Iterator[tuple[ast.AST, Own]]:
    """What decides by something of the process's own whether a loop over a loader takes its steps, each with that."""
    if not loop.loaders or not facts.once(_Sources).are_there:
        return
    sameness = sameness_of(facts, program, trusting=True, drawing=True)
    told: set[ast.AST] = set()
    for node in (*loop.backwards, *(update.node for update in loops.stepped(loop))):
        for test in sameness.parting(node):
            if test not in told and (own := own_of(facts, program, test, drawing=True)) is not None:
                told.add(test)
                yield test, own


def own_test(facts: Facts, program: Program, test: ast.expr) -> Own | None:
    """What a test goes back to that a clock, the system or a draw gives each process of its own."""
    if not facts.once(_Sources).are_there:
        return None
    sameness = sameness_of(facts, program, trusting=True, drawing=True)
    sameness.answers.take()
    return None if sameness.same(test) else sameness.answers.take()


#: Methods whose objects need not be known: they draw, or ask for a file.
_ASKING = known.DRAWING_METHODS | {"exists", "is_file"}


class _Sources:
    """Whether anything in the files asks for a clock, the system or chance: most programs need no further look."""

    def __init__(self, facts: Facts) -> None:
        names = {name for use in facts.calls for name in facts.called(use.node)}
        self.are_there = (
            any(known.is_own(name) or known.is_chance(name) for name in names)
            or not names.isdisjoint(AT_ANY_TIME | known.PRESENCE)
            or any(getattr(use.node.func, "attr", "") in _ASKING for use in facts.calls)
            or any(_handles_in_loop(facts, module) for module in facts.editable)
        )


def _handles_in_loop(facts: Facts, module: Module) -> bool:
    tree = facts.tree_of(module)
    handlers = (n for n in tree.nodes if isinstance(n, ast.ExceptHandler)) if b"except" in module.file.content else ()
    return any(True for handler in handlers for _ in tree.loops(handler))


def own_of(facts: Facts, program: Program, node: ast.AST, *, drawing: bool = False) -> Own | None:
    """What of a clock or the system, or a draw, a decision goes back to; None: it is not known where from."""
    sameness = sameness_of(facts, program, trusting=True, drawing=drawing)
    sameness.answers.take()
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        sameness.same(node.test)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        sameness.even(node.iter)
    elif isinstance(node, (ast.Assign, ast.AugAssign)) and sameness.same(node.value):
        sameness.alike(node, deep=True)
    elif drawing:
        for junction in junctions(facts.tree(node), node):
            sameness.same(junction.test)
    own = sameness.answers.take()
    if drawing and own is None and isinstance(node, (ast.If, ast.While)):
        return next(asked_files(facts, node.test), None)
    return own


def is_drawn(facts: Facts, own: Own) -> bool:
    """Whether what differs is a draw, and neither a clock nor the system."""
    names = facts.called(own) if isinstance(own, ast.Call) else frozenset()
    return any(map(known.is_chance, names)) or getattr(getattr(own, "func", None), "attr", "") in known.DRAWING_METHODS


def by_system(facts: Facts, node: ast.AST, own: Own | None, told: str | None = None) -> Refusal:
    """Why a program is left that decides by a clock or the system; `told`: what it decides."""
    what, text = decided(node)
    way = "decide by a number of steps"
    if isinstance(own, ast.ExceptHandler):
        by = f"by {text}, which an exception sets (line {own.lineno}) that one process may meet alone"
        return Refusal(node, "MIG122", f"{told or what} {by}: processes would part ways", "let it end the program")
    through = ""
    if own is not None and (source := ast.unparse(own)) not in text:
        path = facts.file(own).path
        place = f"line {own.lineno}" if path == facts.file(node).path else f"{path}:{own.lineno}"
        through = f" ({source} in {place})"
        way = f"let all processes have one {source}, by broadcast_object_list() or an option, or {way}"
    why = f"{told or what} by {text}, which a clock or the system gives{through}: processes would part ways"
    return Refusal(node, "MIG122", why, way)


def decided(node: ast.AST) -> tuple[str, str]:
    """What is decided at a place, in words, and by what."""
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return "whether training goes on is decided here", ast.unparse(node.test)
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return "how often this loop runs is decided", ast.unparse(node.iter)
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("alarm", "setitimer")):
        return "the training is stopped", ast.unparse(node)
    if isinstance(node, ast.Call) and node.args:
        return "the learning rate is set here", ", ".join(map(ast.unparse, node.args))
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        return "the learning rate is set here", ast.unparse(node.value)
    return "whether training goes on is decided here", ast.unparse(node).partition("\n")[0]
