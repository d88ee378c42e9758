"""Sums over the processes that go away in a training: what was shown there of all processes is one process's then.

`reduced = reduce_tensor(loss.data, world_size)`: an evaluation is exact without it, and what training adds up is joined
after its loop. What a step shows is not, so that is said.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.calls import REDUCTIONS
from migrate.analysis.roles import FROM_LOADER, roles
from migrate.analysis.units import Function
from migrate.programs.loops import Loops
from migrate.report.model import Finding, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.sums import Sums
    from migrate.alone.world import World
    from migrate.analysis.units import Unit

_DEEPEST = 3  # calls between a training loop and the sum


def lost_sums(world: World, sums: Sums) -> Iterator[Finding]:
    """A note for each place in a training loop where something of the batches was summed up."""
    units = _summing(world, sums)
    if not units:
        return
    told: set[ast.stmt] = set()
    for loop in Loops(world.facts).training:
        for node in ast.walk(loop.node):
            if not isinstance(node, ast.Call) or world.is_left(node):
                continue
            if not (_sums(world, sums, node) or units.intersection(world.facts.targets(node))):
                continue
            statement = world.facts.tree(node).statement(node)
            if statement not in told and any(_is_of_batches(world, given) for given in _given(node)):
                told.add(statement)
                yield _note(world, node)


def _summing(world: World, sums: Sums) -> set[Unit]:
    """The units in which, or in what they call, something is summed up over the processes, and no longer is."""
    facts = world.facts
    level = {
        use.unit for use in facts.calls_anywhere if use.unit.module in world.modules and _sums(world, sums, use.node)
    }
    found = set(level)
    for _ in range(_DEEPEST):
        callers = (call for unit in level if isinstance(unit, Function) for call in facts.callers(unit))
        level = {call.caller for call in callers} - found
        found |= level
    return found


def _sums(world: World, sums: Sums, call: ast.Call) -> bool:
    return bool(world.facts.called(call) & REDUCTIONS) and not sums.stays(call)


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _is_of_batches(world: World, given: ast.expr) -> bool:
    """Whether something was computed of a batch, or holds what was: a dictionary of losses."""
    inner = [world.facts.values(node) for node in ast.walk(given) if isinstance(node, ast.expr)]
    return any(
        roles(values) & FROM_LOADER or any(world.facts.inside(values, role) for role in FROM_LOADER) for values in inner
    )


def _note(world: World, call: ast.Call) -> Finding:
    file = world.facts.file(call)
    line, column, end = file.place(call)
    message = f"`{ast.unparse(call)}` goes away: what it joined in this step is of one process's share of the data"
    return Finding("MIG114", file.path, line, column, end, message, "", Kind.NOTE)
