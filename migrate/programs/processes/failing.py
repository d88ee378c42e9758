"""Where a program goes on after something has failed: over a loader, one process may fail alone.

`except RuntimeError: continue` around a step: the others are in it by then. They share gradients with the next step of
the one that has left, and at the end they wait for a step that it does not take. That is refused. A training that
begins again where it has failed as a whole, or goes on with the next epoch, does so once all of them have failed.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.analysis.syntax import FUNCTIONS, TRIES, jumps, walk
from migrate.programs.processes.duties import leaves
from migrate.programs.processes.parting import is_shared_trouble
from migrate.programs.processes.raised import BROAD, goes_on, kinds_of, name_of
from migrate.programs.program import Refusal
from migrate.programs.reach.callees import upwards
from migrate.programs.values.accumulators import statements_after

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program


def failing(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Handlers by which one process would leave a step alone."""
    told: set[ast.ExceptHandler] = set()
    for loop in program.training if program.training_loaders else ():
        step = loops.taking(loop.node)
        units = (unit.node for unit in loops.updates.functions(step) if loops.trains(unit.node))
        for attempt in (node for root in (step, *units) for node in walk(root) if isinstance(node, TRIES)):
            for handler in attempt.handlers:
                if handler not in told and _leaves_step(facts, loops, attempt, handler):
                    told.add(handler)
                    yield _refusal(handler, is_taken=any(map(loops.trains, attempt.body)))


def _leaves_step(facts: Facts, loops: Loops, attempt: ast.Try, handler: ast.ExceptHandler) -> bool:
    if not goes_on(handler) or is_shared_trouble(handler, known.SHARED_IN_STEPS) or _is_raised(attempt, handler):
        return False
    if any(loops.trains(part) or loops.updates.reached(part) for part in attempt.body):
        return True
    return any(leaves(facts, loops, jump) for jump in jumps(handler.body))


def _is_raised(attempt: ast.Try, handler: ast.ExceptHandler) -> bool:
    """Whether the program itself raises what is handled, right there: that is a test, on which all agree."""
    names = kinds_of(handler)
    return names.isdisjoint(BROAD) and names <= set(_raised(attempt))


def _raised(attempt: ast.Try) -> Iterator[str]:
    for node in (node for part in attempt.body for node in walk(part)):
        if isinstance(node, ast.Raise):
            yield name_of(node.exc.func if isinstance(node.exc, ast.Call) else node.exc)
        elif isinstance(node, ast.Assert):
            yield "AssertionError"


def _refusal(handler: ast.ExceptHandler, *, is_taken: bool) -> Refusal:
    what = f"except {ast.unparse(handler.type)}" if handler.type is not None else "except"
    why = f"`{what}:` goes on where one process alone may have failed in a step: the others would wait for it"
    return Refusal(handler, "MIG122", why, _WAYS_OUT[is_taken])


#: What to do instead, by whether the step is taken in what may fail.
_WAYS_OUT = {
    True: "let it end the program (`raise`), or ask for what would fail by an `if` at the top of the step",
    False: "note it there (`failed = True`), and leave the step below the try statement (`if failed: continue`)",
}


# --- a training that has failed as a whole --------------------------------------------------------------------------


def begun_again(facts: Facts, loops: Loops, program: Program) -> list[ast.ExceptHandler]:
    """Handlers around a training after which it begins again, or another one does."""
    found: dict[ast.ExceptHandler, None] = {}
    for loop in program.training if program.training_loaders else ():
        for attempt in _attempts(facts, loops.taking(loop.node)):
            for handler in attempt.handlers:
                if goes_on(handler) and not is_shared_trouble(handler, known.SHARED_IN_STEPS):
                    if _trains_again(facts, loops, attempt, handler):
                        found[handler] = None
    return list(found)


def _attempts(facts: Facts, node: ast.AST) -> Iterator[ast.Try]:
    """The `try` statements around a node, and around the calls of its function."""
    for call in upwards(facts, node):
        below = call
        for above in facts.tree(call).up(call):
            if isinstance(above, FUNCTIONS):
                break
            if isinstance(above, TRIES) and below in above.body:
                yield above
            below = above


def _trains_again(facts: Facts, loops: Loops, attempt: ast.Try, handler: ast.ExceptHandler) -> bool:
    if any(loops.trains(part) for part in handler.body):
        return True
    unit, last = facts.unit(attempt), handler.body[-1]
    own = list(facts.tree(attempt).loops(attempt))
    around = list(loops.around(attempt, unit))[_left(own, last) :]
    is_over = isinstance(last, (ast.Return, ast.Break, ast.Continue))
    return bool(around) or (not is_over and any(map(loops.trains, statements_after(facts, attempt))))


def _left(own: Sequence[ast.AST], last: ast.stmt) -> int:
    """How many of the loops of a function a statement leaves."""
    return len(own) if isinstance(last, ast.Return) else int(isinstance(last, ast.Break))
