"""What a training loop carries on from batch to batch, and computes its loss from: a state, a center, the last batch.

    out, state = model(x, state.detach())            loss = criterion(out - center, y)
                                                     center = 0.9 * center + 0.1 * out.detach().mean(0)

Each process goes on with what its own batches left: these are not the ones that follow each other in the order of all,
and a mean over them is one process's. Numbers of which the mean can be taken are balances
(`migrate/programs/shares/balances.py`), rows that an index names are told by themselves (`rows_kept.py`).
"""

from __future__ import annotations

import ast
from itertools import chain
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import DEFINITIONS, own_nodes, reads, targets_of, walk, writes
from migrate.programs.reach.forwards import forwards_inside
from migrate.programs.reach.outsiders import entered_beside_models
from migrate.programs.training.rows_kept import rows_inside
from migrate.programs.values.accumulators import holds_own
from migrate.programs.values.states_kept import states_kept

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact

_IN_PLACE = frozenset({"copy_", "add_", "lerp_"})
_Assignment = ast.Assign | ast.AnnAssign | ast.AugAssign
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)


def carried(facts: Facts, loop: LoopFact) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of a loop over batches that leave something for the next one's loss, with the name it has."""
    if not isinstance(loop.node, ast.For) or not facts.loaders(facts.values(loop.node.iter)):
        return
    body = _statements(loop.node)
    given: dict[str, list[tuple[ast.stmt, ast.expr]]] = {}
    for node in body:
        for name, value in _given(node):
            given.setdefault(name, []).append((node, value))
    started = {name for call in loop.backwards for name in reads(call)}
    for name in given.keys() - writes(loop.node.target) - started:
        own = [statement for statement, value in given[name] if holds_own(facts, loop, value)]
        if own and _comes_to(body, name, given[name][0][0].lineno, started):
            yield own[-1], name


def carried_inside(facts: Facts, loop: LoopFact, models: Collection[ast.AST]) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of modules that leave something in an attribute, for the next batch of a loop, with its name.

    Not in a buffer of a trained model, which is told by itself (`rows_kept.py`); of a loss each process has its own.
    """
    nodes = chain(walk(loop.node), *(facts.own(unit) for unit in entered_beside_models(facts, loop.node)))
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    forwards = dict.fromkeys(forward for call in calls for forward in forwards_inside(facts, call))
    trained = (call for call in calls if origins(facts.values(call.func), Role.MODEL) & set(models))
    of_models = dict.fromkeys(forward for call in trained for forward in forwards_inside(facts, call))
    in_buffers = {statement for statement, _ in rows_inside(facts, of_models)}
    for statement, name in states_kept(facts, forwards, loop.node, in_training=True):
        if statement not in in_buffers:
            yield statement, f"self.{name}"
    yield from rows_inside(facts, (forward for forward in forwards if forward not in of_models))


def _statements(loop: ast.For) -> list[ast.stmt]:
    """The statements of a loop, in their order, without those of functions that it defines."""
    top = [statement for statement in loop.body if not isinstance(statement, DEFINITIONS)]
    found = (node for statement in top for node in (statement, *own_nodes(statement)))
    own = (node for node in found if isinstance(node, ast.stmt) and not isinstance(node, DEFINITIONS))
    return sorted(own, key=lambda statement: (statement.lineno, statement.col_offset))


def _given(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """The names that a statement gives a value, also in place: `center.mul_(0.9).add_(value)`."""
    if isinstance(statement, _ASSIGNMENTS) and statement.value is not None:
        yield from ((name, statement.value) for name in _names(statement))
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call: ast.expr = statement.value
        values: list[ast.expr] = []
        while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            values += call.args if call.func.attr in _IN_PLACE else []
            call = call.func.value
        if isinstance(call, ast.Name):
            yield from ((call.id, value) for value in values)


def _names(statement: _Assignment) -> set[str]:
    """The names that an assignment gives as a whole or as parts of a tuple: not what it puts into one."""
    return {name for target in targets_of(statement) for name in writes(target)}


def _comes_to(body: list[ast.stmt], name: str, first: int, started: set[str]) -> bool:
    """Whether what a name still has of the step before comes to a loss: it is read no later than it is first given."""
    tainted: set[str] = set()
    for statement in body:
        if isinstance(statement, _ASSIGNMENTS) and statement.value is not None:
            read = reads(statement)
            is_old = name in read and statement.lineno <= first
            tainted = tainted | _names(statement) if read & tainted or is_old else tainted - _names(statement)
    return not tainted.isdisjoint(started)
