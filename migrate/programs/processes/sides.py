"""What follows by the answer to a test that no process may do alone, or leave out alone."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS, LOOPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.processes.alike import Alike
    from migrate.programs.processes.junctions import Junction

_LEAVING = (ast.Break, ast.Continue, ast.Return)


class Side(Enum):
    """What a branch does that no process may do alone, or leave out alone; where it does several, the first."""

    TRAINS = "takes the step"
    LEAVES = "leaves the step"
    ALIKE = "changes what is trained, or comes to where the others are waited for"


def sides_of(facts: Facts, loops: Loops, alike: Alike, junction: Junction) -> list[Side | None]:
    """What follows by the answer to a test."""
    return [_side(facts, loops, alike, side) for side in junction.sides]


def _side(facts: Facts, loops: Loops, alike: Alike, parts: Sequence[ast.AST]) -> Side | None:
    if any(loops.trains(part) or loops.updates.reached(part) for part in parts):
        return Side.TRAINS
    if any(leaves(facts, loops, inner) for part in parts for inner in _inside(part)):
        return Side.LEAVES
    return Side.ALIKE if alike.is_done(parts) else None


def _inside(part: ast.AST) -> Iterator[ast.AST]:
    """A statement with all that is in it, without the functions that it defines."""
    if isinstance(part, FUNCTIONS):
        return
    yield part
    for child in ast.iter_child_nodes(part):
        if isinstance(child, ast.stmt):
            yield from _inside(child)
        elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
            for inner in child.body:
                yield from _inside(inner)


def leaves(facts: Facts, loops: Loops, node: ast.AST) -> bool:
    """Whether a statement leaves what all processes do together, and not only a loop in between."""
    if isinstance(node, (ast.Raise, ast.Assert)):
        return _is_caught(facts, loops, node)
    if isinstance(node, ast.Return) or not isinstance(node, _LEAVING):
        return isinstance(node, ast.Return)
    left = next(facts.tree(node).loops(node), None)
    return left is not None and loops.trains(left)


def _is_caught(facts: Facts, loops: Loops, node: ast.Raise | ast.Assert) -> bool:
    """Whether an exception only leaves a step; one that ends the program ends all of its processes."""
    below: ast.AST = node
    for above in facts.tree(node).up(node):
        if isinstance(above, FUNCTIONS) or (isinstance(above, LOOPS) and loops.trains(above)):
            return False
        if isinstance(above, ast.Try) and above.handlers and below in above.body:
            return True
        below = above
    return False
