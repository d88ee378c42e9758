"""What follows by the answer to a test that no process may do alone, or leave out alone."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.known.same import EXITS
from migrate.analysis.syntax import FUNCTIONS
from migrate.programs.processes.raised import Raising, is_handled

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.processes.alike import Alike
    from migrate.programs.processes.junctions import Junction


class Duty(Enum):
    """What a side of a test does that no process may do alone, or leave out alone; where it does several, the first."""

    TRAINS = "takes the step"
    LEAVES = "leaves the step"
    ALIKE = "changes what is trained, or comes to where the others are waited for"


def duties_of(facts: Facts, loops: Loops, alike: Alike, junction: Junction) -> list[Duty | None]:
    """The duty on each side of a test; None: each process may do what is there by itself."""
    return [_duty(facts, loops, alike, side) for side in junction.sides]


def _duty(facts: Facts, loops: Loops, alike: Alike, parts: Sequence[ast.AST]) -> Duty | None:
    if any(loops.trains(part) or loops.updates.reached(part) for part in parts):
        return Duty.TRAINS
    if any(leaves(facts, loops, inner) for part in parts for inner in _inside(part)):
        return Duty.LEAVES
    raising = facts.once(Raising)
    if any(raising[unit] for part in parts for unit in loops.updates.functions(part)):
        return Duty.LEAVES
    return Duty.ALIKE if alike.is_done(parts) else None


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
        return is_handled(facts, loops, node)
    if isinstance(node, ast.Return) or (isinstance(node, ast.Expr) and ends_well(facts, node.value)):
        return True
    left = next(facts.tree(node).loops(node), None) if isinstance(node, (ast.Break, ast.Continue)) else None
    return left is not None and loops.trains(left)


def ends_well(facts: Facts, call: ast.expr) -> bool:
    """`sys.exit()`: the others are not ended by it, as they are by a status that tells of trouble."""
    if not isinstance(call, ast.Call) or not facts.called(call) & EXITS:
        return False
    status = call.args[0] if call.args else None
    return not (isinstance(status, ast.Constant) and status.value)
