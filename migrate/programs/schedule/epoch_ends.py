"""What a loop over batches does once in an epoch, or a certain number of times in it.

    if i == len(loader) - 1:                    if (i + 1) % (len(loader) // 4) == 0:
        scheduler.step()                            save(model)

On N processes that comes as often, where the length is that of a process's share. Measured before prepare it is the
length of all, and so is a number that the data set says: no process comes to that batch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import FUNCTIONS, walk
from migrate.programs.values.lengths import measured, sized
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program
    from migrate.programs.values.lengths import Moments

_ABOVE, _BELOW = (ast.Gt, ast.GtE), (ast.Lt, ast.LtE)


def waited_for(facts: Facts, loops: Loops, program: Program, call: ast.Call) -> list[ast.Call]:
    """The lengths by which a call in a training loop waits for certain batches; none: it comes with each of them."""
    training, found = {loop.node for loop in program.training}, list[ast.Call]()
    below: ast.AST = call
    for above in facts.tree(call).up(call):
        if above in training or isinstance(above, FUNCTIONS):
            break
        if isinstance(above, ast.If) and below is not above.test and not loops.updates.reached(above):
            found += _asked(facts, program, above.test, holds=any(below is each for each in above.body))
        below = above
    return found


def passed_over(
    facts: Facts, loops: Loops, program: Program, moments: Moments, loop: LoopFact
) -> Iterator[tuple[ast.expr, ast.Call]]:
    """The tests in a training loop that wait for a batch which no process comes to, with the length that says which."""
    for node in walk(loop.node):
        if isinstance(node, ast.If) and not loops.updates.reached(node):
            asked = _asked(facts, program, node.test, holds=True)
            asked += _asked(facts, program, node.test, holds=False) if node.orelse else []
            yield from ((node.test, length) for length in asked[:1] if is_of_all(facts, program, moments, length))


def is_of_all(facts: Facts, program: Program, moments: Moments, length: ast.Call) -> bool:
    """Whether a length is that of all batches or samples: of a data set, or measured before prepare."""
    return not measured(facts, length) & program.training_loaders or False in moments.after(length)


def _asked(facts: Facts, program: Program, test: ast.expr, *, holds: bool) -> list[ast.Call]:
    """The lengths by which a test holds, or does not, for certain batches alone."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _asked(facts, program, operand, holds=not holds)
        case ast.BoolOp(op=operator, values=values):
            parts = [_asked(facts, program, value, holds=holds) for value in values]
            is_any = isinstance(operator, ast.And) is holds
            return [length for part in parts for length in part] if is_any or all(parts) else []
        case ast.BinOp(op=ast.Mod()) if not holds:
            return _lengths(facts, program, test)
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if not _is_of_batch(facts, test):
            before, behind = _lengths(facts, program, left), _lengths(facts, program, right)
            if isinstance(operator, (ast.Eq, ast.NotEq)):
                if any(isinstance(side, ast.Constant) and not _is_number(side.value) for side in (left, right)):
                    return []  # `args.task == "sum"`: no count is asked for
                return before + behind if isinstance(operator, ast.Eq) is holds else []
            rising, falling = (_ABOVE, _BELOW) if holds else (_BELOW, _ABOVE)
            return (behind if isinstance(operator, rising) else []) + (before if isinstance(operator, falling) else [])
    return []


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_of_batch(facts: Facts, test: ast.expr) -> bool:
    """`loss.item() > 1 / len(loader)`: no count is asked for."""
    return any(roles(facts.values(inner)) & FROM_LOADER for inner in walk(test) if isinstance(inner, ast.expr))


def _lengths(facts: Facts, program: Program, node: ast.expr) -> list[ast.Call]:
    """The lengths that a count is made of, of loaders that are trained on and of their data."""
    behind = facts.once(Sources).behind([node])
    calls = dict.fromkeys(inner for each in behind for inner in walk(each).of(ast.Call))
    return [call for call in calls if _is_length(facts, program, call)]


def _is_length(facts: Facts, program: Program, call: ast.Call) -> bool:
    if (counted := sized(facts, call)) is None:
        return False
    if measured(facts, call) & program.training_loaders:
        return True
    trained = {value for loader in program.training_loaders for value in facts.over(loader)}
    return any(value in trained for value in facts.values(counted) if value.role is Role.DATASET)
