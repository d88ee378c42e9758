"""Rates that go on, at every batch, from what they were at the batch before: N processes take fewer such steps.

`group["lr"] *= 0.9`, and `lr = lr * 0.9` or `self.lr = max(0, self.lr - step)` above a statement that sets it. What
counts the batches (`step += 1`) does the same, and is looked at as a count. A name that begins anew in each step, `lr =
base * warm(step)` above `lr *= decay(step)`, does not go on: it is what the counts of this step make of it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import targets_of, walk
from migrate.analysis.units import Function
from migrate.programs.schedule.groups import is_scheduled
from migrate.programs.values.afresh import is_afresh
from migrate.programs.values.content import made_from
from migrate.programs.values.counts import Count, Counts, Met
from migrate.programs.values.scopes import bound_in_scope
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.analysis.units import Unit

_DEEPEST = 4  # names that stand for a rate, calls that hand it on


def goes_on(facts: Facts, counts: Counts, node: ast.Assign | ast.AugAssign) -> bool:
    """Whether a statement sets a rate that is changed by a step of its own at every batch, in no turns."""
    if not counts.is_per_batch(node):
        return False
    if any(_changes(node, ast.unparse(target)) for target in targets_of(node)):
        return not _is_in_turns(facts, counts, node)
    return any(
        _changes(binding.statement, binding.target)
        and counts.is_per_batch(binding.statement)
        and not _is_in_turns(facts, counts, binding.statement)
        and not _is_chosen(facts, counts, binding.statement)
        and counts.of(name).count is Count.NONE
        and not _begins_anew(facts, counts, binding)
        for name in _names_behind(facts, node.value)
        for binding in bound_in_scope(facts, name)
    )


def _changes(statement: ast.stmt, target: str) -> bool:
    """Whether a statement gives its target something that is made of what this was before."""
    if isinstance(statement, ast.AugAssign):
        return True
    return isinstance(statement, ast.Assign) and any(
        ast.unparse(inner) == target
        for inner in walk(statement.value)
        if isinstance(inner, (ast.Name, ast.Attribute, ast.Subscript))
    )


def _names_behind(facts: Facts, value: ast.expr) -> Iterator[ast.Name | ast.Attribute]:
    """The names and attributes that a value is made of, and those that these stand for."""
    sources, waiting = facts.once(Sources), [value]
    for _ in range(_DEEPEST):
        named = [n for each in waiting for n in walk(each) if isinstance(n, (ast.Name, ast.Attribute))]
        yield from named
        waiting = [
            e for name in named for e in sources.given(name).expressions if isinstance(e, (ast.Name, ast.Attribute))
        ]


def _begins_anew(facts: Facts, counts: Counts, binding: Binding) -> bool:
    """Whether each step gives a name a value before it changes it, which does not come from an earlier step."""
    name, unit, tree = binding.target, binding.unit, facts.tree(binding.statement)
    step = next((loop for loop in tree.loops(binding.statement) if not counts.is_per_batch(loop)), None)
    if not name.isidentifier() or any(
        name in n.names for n in facts.own(unit) if isinstance(n, (ast.Global, ast.Nonlocal))
    ):
        return False
    if step is None:
        if not isinstance(unit, Function):
            return False
    elif not is_afresh(tree, binding.statement, name, step):
        return False
    sources = facts.once(Sources)
    assert isinstance(binding.statement, (ast.Assign, ast.AugAssign))  # what changes a name
    given = [e for each in targets_of(binding.statement) for e in sources.given(each).expressions]
    return not any(
        _is_of_earlier(facts, counts, inner, name, unit)
        for behind in sources.behind([e for e in given if not _mentions(e, name)])
        for inner in walk(behind)
    )


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id == name for inner in walk(node))


def _is_of_earlier(facts: Facts, counts: Counts, node: ast.AST, name: str, unit: Unit) -> bool:
    """Whether an expression is the rate that is set already, or the name itself, which has been handed on."""
    if isinstance(node, ast.Name):
        return node.id == name and facts.unit(node) is unit
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return bool(origins(facts.values(node.func.value), Role.OPTIMIZER, Role.SCHEDULER))
    return isinstance(node, ast.Subscript) and is_scheduled(facts, counts.program, node)


def _is_in_turns(facts: Facts, counts: Counts, node: ast.stmt) -> bool:
    """Whether a change waits for a certain batch: the condition is looked at instead."""
    counts.tests(node)
    moments = {meeting.node for meeting in counts.meetings if meeting.met is Met.MOMENT}
    return any(not moments.isdisjoint(walk(test)) for test in _tests(facts, node))


def _is_chosen(facts: Facts, counts: Counts, node: ast.stmt) -> bool:
    """Whether a change is made where a batch says so."""
    return any(made_from(facts, counts.program.training_loaders, test) for test in _tests(facts, node))


def _tests(facts: Facts, node: ast.stmt) -> Iterator[ast.expr]:
    return (above.test for above in facts.tree(node).up(node) if isinstance(above, ast.If))
