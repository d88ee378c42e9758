"""What a clock or the system gives each process of its own, and what is decided by that.

`if time.time() - start > budget: break`: one process leaves, and the others wait for it in backward for ever.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.programs.processes.asked import sameness_of
from migrate.programs.processes.sameness import Sameness
from migrate.programs.program import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program


def deciding(facts: Facts, loops: Loops, program: Program, loop: LoopFact) -> Iterator[tuple[ast.AST, ast.expr]]:
    """What decides by a clock or the system whether a loop over a loader takes its steps, each with that."""
    if not loop.loaders or not facts.once(_Clocks).are_read:
        return
    sameness = sameness_of(facts, program, trusting=True)
    told: set[ast.AST] = set()
    for node in (*loop.backwards, *(update.node for update in loops.stepped(loop))):
        for test in sameness.parting(node):
            if test not in told and (own := own_of(facts, program, test)) is not None:
                told.add(test)
                yield test, own


class _Clocks:
    """Whether anything in the files asks for a clock or the system: most programs need no further look."""

    def __init__(self, facts: Facts) -> None:
        names = (name for use in facts.calls for name in facts.called(use.node))
        self.are_read = any(name.startswith(known.OWN) for name in names)


def own_of(facts: Facts, program: Program, node: ast.AST) -> ast.expr | None:
    """What of a clock or the system a decision goes back to; None: it is not known where from."""
    sameness = Sameness(facts, program, trusting=True)  # one of its own, which meets all anew
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        sameness.same(node.test)
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        sameness.even(node.iter)
    elif isinstance(node, (ast.Assign, ast.AugAssign)) and sameness.same(node.value):
        sameness.alike(node, deep=True)
    return sameness.own


def by_system(node: ast.AST, own: ast.expr | None) -> Refusal:
    """Why a program is left that decides by a clock or the system."""
    what, text = decided(node)
    way = "decide by a number of steps"
    through = ""
    if own is not None and (source := ast.unparse(own)) not in text:
        through = f" ({source} in line {own.lineno})"
        way = f"let all processes have one {source}, by broadcast_object_list() or an option, or {way}"
    why = f"{what} by {text}, which a clock or the system gives{through}: processes would part ways"
    return Refusal(node, "MIG122", why, way)


def decided(node: ast.AST) -> tuple[str, str]:
    """What is decided at a place, in words, and by what."""
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return "whether training goes on is decided here", ast.unparse(node.test)
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return "how often this loop runs is decided", ast.unparse(node.iter)
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("alarm", "setitimer")):
        return "the training is stopped", ast.unparse(node)
    if isinstance(node, ast.Call):
        return "the learning rate is set here", ", ".join(map(ast.unparse, node.args))
    if isinstance(node, (ast.Assign, ast.AugAssign)):
        return "the learning rate is set here", ast.unparse(node.value)
    return "whether training goes on is decided here", ast.unparse(node).partition("\n")[0]
