"""Rates that go on, at every batch, from what they were at the batch before: N processes take fewer such steps.

`group["lr"] *= 0.9`, and `lr = lr * 0.9` or `self.lr = max(0, self.lr - step)` above a statement that sets it. What
counts the batches (`step += 1`) does the same, and is looked at as a count.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import targets_of, walk
from migrate.programs.values.content import made_from
from migrate.programs.values.counts import Count, Counts, Met
from migrate.programs.values.scopes import bound_in_scope
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

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
