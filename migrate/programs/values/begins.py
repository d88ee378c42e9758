"""Where what a loop adds up begins: the statement before which a place gets its first value.

total = 0                      self.reset()                      self.total = 0        stats = {"loss": 0}
for x, y in loader: ...        for x, y in self.loader: ...      self.train_epoch()    train_epoch(stats)

The last two call the function of the loop.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import DEFINITIONS, LOOPS, reads, walk
from migrate.analysis.units import Function
from migrate.programs.values.additions import added, additions
from migrate.programs.values.below import is_handed, is_on_own, object_of, set_below, sharing
from migrate.programs.values.kept import root_of, sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_DEEPEST = 3  # calls between the loop and what gives an attribute its first value


def begins_before(facts: Facts, loop: ast.stmt, name: str) -> ast.stmt | None:
    """The statement around a loop before which, in the same block, the name gets its first value.

    What gets it again behind the loop, at the end of each round around it, begins with each round as well. An
    attribute, or an item of what a function is given, may get it where the function of the loop is called: before each
    call, or behind it.
    """
    tree = facts.tree(loop)
    inner = loop
    begun: ast.stmt | None = None
    is_once = True
    while True:
        before, later = _around(facts, inner)
        if any(_begins(facts, statement, name) for statement in before):
            return begun or inner
        parent = tree.parents[inner]
        if not isinstance(parent, ast.stmt) or isinstance(parent, DEFINITIONS):
            is_anew = is_once and _begins_with_call(facts, loop, name, _DEEPEST) and _is_alone(facts, loop, name)
            return loop if is_anew else None
        if isinstance(parent, LOOPS):
            is_once = False
            if begun is None and _is_set_anew(facts, later, name):
                begun = inner
        inner = parent


def _around(facts: Facts, statement: ast.stmt) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """What stands before a statement in its block, and behind it."""
    block = facts.tree(statement).block(statement)
    position = block.index(statement)
    return list(block[:position]), list(block[position + 1 :])


def _begins(facts: Facts, statement: ast.stmt, name: str) -> bool:
    """Whether a statement gives a place its first value; `self.reset()`, by methods that do no more with it."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return sets(statement, name)
    if not isinstance(statement, ast.Expr) or not (given := set_below(facts, statement, name)):
        return False
    return not any(ast.unparse(target) == name for target, _ in added(facts, statement)) and _are_constant(given)


def _are_constant(given: Sequence[ast.Assign | ast.AnnAssign]) -> bool:
    values = [each.value for each in given]
    parts = [part for value in values for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
    return all(isinstance(part, ast.Constant) for part in parts)


def _is_set_anew(facts: Facts, later: Sequence[ast.stmt], name: str) -> bool:
    """Whether statements come, in each round, to one that gives a name a value of its own: `losses = []`."""
    for statement in later:
        if isinstance(statement, ast.Assign) and sets(statement, name):
            return name not in reads(statement.value)
        if isinstance(statement, ast.Expr) and _begins(facts, statement, name):
            return True
        if any(isinstance(node, ast.Continue) for node in walk(statement)):
            return False
    return False


# --- what begins where the function of the loop is called -------------------------------------------------------------


def _is_alone(facts: Facts, loop: ast.stmt, name: str) -> bool:
    """Whether nothing adds to a place but a loop, and what it calls."""
    mine = {id(node) for node in (*walk(loop), *sharing(facts, loop, name))}
    unit = facts.unit(loop)
    around: Iterable[ast.AST] = walk(facts.tree(loop).root)
    if isinstance(unit, Function) and root_of(name) in unit.parameter_names and root_of(name) != object_of(unit):
        around = (node for each in (unit, *_calling(facts, unit)) for node in facts.own(each))
    around = (node for node in around if id(node) not in mine)
    return not any(ast.unparse(target) == name for node in around for target, _ in additions(node))


def _calling(facts: Facts, unit: Function) -> Iterator[Unit]:
    return (facts.unit(call.node) for call in facts.callers(unit))


def _begins_with_call(facts: Facts, node: ast.AST, name: str, depth: int) -> bool:
    """Whether the only call of the function that a node stands in comes with a first value for a place."""
    unit = facts.unit(node)
    calls = facts.callers(unit) if isinstance(unit, Function) and depth > 0 else []
    if len(calls) != 1:
        return False
    if not is_on_own(facts, calls[0].node, name) and not is_handed(facts, calls[0].node, unit, name):
        return False
    inner = facts.tree(calls[0].node).statement(calls[0].node)
    while True:
        before, later = _around(facts, inner)
        if any(_begins(facts, statement, name) for statement in before):
            return True
        parent = facts.tree(inner).parents[inner]
        if isinstance(parent, LOOPS):
            return _is_set_anew(facts, later, name) and _is_made_with(facts, unit, name)
        if not isinstance(parent, ast.stmt) or isinstance(parent, DEFINITIONS):
            return _begins_with_call(facts, inner, name, depth - 1)
        inner = parent


def _is_made_with(facts: Facts, method: Unit, name: str) -> bool:
    """Whether the object of a method gets an attribute when it is made."""
    owner = method.owner if isinstance(method, Function) else None
    units = owner.constructors() if owner is not None else []
    given = [node for unit in units for node in facts.own(unit) if isinstance(node, (ast.Assign, ast.AnnAssign))]
    mine = [node for node in given if sets(node, name)]
    return bool(mine) and _are_constant(mine)
