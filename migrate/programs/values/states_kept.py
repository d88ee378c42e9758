"""What a model goes on with from batch to batch, in attributes of its own: `out, self.h = self.lstm(x, self.h)`.

It follows the order of the batches: each process would go on with what its own ones left. What is set anew before it
is read in each call, or in each round of the loop, is no such thing; nor is what is only made if it is not there or
does not fit (`if self.mask is None or self.mask.size(0) != len(x): self.mask = ...`).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, roles
from migrate.analysis.syntax import line_of, targets_of, walk
from migrate.programs.reach.forwards import is_own_object, own_calls, with_own_methods
from migrate.programs.reach.outsiders import entered_beside_models

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Loop
    from migrate.analysis.units import Function

_ASSIGNMENTS = (ast.Assign, ast.AnnAssign)
#: Attributes of a tensor that tell nothing of what is in it.
_KIND = frozenset("device dtype layout is_cuda".split())
#: Methods that put a tensor where another one is.
_PUT = frozenset({"to", "type_as"})


def states_kept(
    facts: Facts, forwards: Iterable[Function], loop: Loop, *, in_training: bool
) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of models by which a call leaves something for the next one in a loop, with what holds it.

    `in_training`: whether what stands under `if self.training:` is run.
    """
    anew = _set_in_round(facts, loop)
    for forward in forwards:
        if forward.itself is None:
            continue
        read = _first_reads(facts, forward, {})
        for unit in with_own_methods(facts, forward) if read else ():
            for statement, name in _stores(facts, unit):
                if name in read and name not in anew and not _is_where_missing(facts, statement, name):
                    if _is_computed(facts, unit, statement) and (in_training or not only_trains(facts, statement)):
                        yield statement, name


def _stores(facts: Facts, unit: Function) -> Iterator[tuple[ast.stmt, str]]:
    """The attributes of its object that a method gives a value, in the order of its lines."""
    nodes = (node for node in facts.own(unit) if isinstance(node, _ASSIGNMENTS) and node.value is not None)
    for node in sorted(nodes, key=lambda each: each.lineno):
        for target in (part for each in targets_of(node) for part in walk(each)):
            if (
                isinstance(target, ast.Attribute)
                and isinstance(target.ctx, ast.Store)
                and is_own_object(unit, target.value)
            ):
                yield node, target.attr


def _first_reads(facts: Facts, unit: Function, known: dict[Function, frozenset[str]]) -> frozenset[str]:
    """The attributes of its object that a method computes with before it gives them a value, also by what it calls.

    `known`: those of the methods that are looked into with it.
    """
    if unit not in known:
        known[unit] = frozenset()  # what calls itself reads nothing else
        known[unit] = frozenset(_read_first(facts, unit, known))
    return known[unit]


def _read_first(facts: Facts, unit: Function, known: dict[Function, frozenset[str]]) -> Iterator[str]:
    given: dict[str, int] = {}
    for statement, name in _stores(facts, unit):
        if not _goes_on(unit, _value(statement), name) and not _is_where_missing(facts, statement, name):
            given.setdefault(name, statement.lineno)
    for call, name in _set_by_call(facts, unit):
        if not _is_where_missing(facts, facts.tree(call).statement(call), name):
            given[name] = min(given.get(name, call.lineno), call.lineno)
    for node in facts.own(unit):
        read = _reads(unit, node)
        if read is not None and line_of(node) <= given.get(read, line_of(node)) and not _is_asked(facts, node):
            yield read
    for call, method in own_calls(facts, unit):
        yield from (r for r in _first_reads(facts, method, known) if call.lineno <= given.get(r, call.lineno))


def _set_by_call(facts: Facts, unit: Function) -> Iterator[tuple[ast.Call, str]]:
    """The calls of methods of its own object by which a method sets attributes anew: `self.reset(len(x))`."""
    for call, method in own_calls(facts, unit):
        for statement, name in _stores(facts, method):
            if not _goes_on(method, _value(statement), name):
                yield call, name


def _reads(unit: Function, node: ast.AST) -> str | None:
    """The attribute of its object that an expression of a method reads."""
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and is_own_object(unit, node.value):
        return node.attr
    return None


def _is_asked(facts: Facts, node: ast.AST) -> bool:
    """Whether something is only asked about: in the test of a branch, or whether it is None."""
    tree, below = facts.tree(node), node
    for above in tree.up(node):
        if isinstance(above, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            return below is above.test
        if isinstance(above, ast.stmt):
            return False
        below = above
    return False


def _is_where_missing(facts: Facts, statement: ast.stmt, name: str) -> bool:
    """Whether something is made where it is not there yet, or does not fit: a branch that asks for it."""
    tree = facts.tree(statement)
    asked = (above.test for above in tree.up(statement) if isinstance(above, ast.If))
    return any(isinstance(node, ast.Attribute) and node.attr == name for test in asked for node in walk(test))


def only_trains(facts: Facts, node: ast.AST) -> bool:
    """Whether something stands under `if self.training:`."""
    tree = facts.tree(node)
    above = [each for each in tree.up(node) if isinstance(each, ast.If)]
    asked = [each.test for each in above if tree.in_block(tree.statement(node), each.body) is not None]
    return any(isinstance(node, ast.Attribute) and node.attr == "training" for test in asked for node in walk(test))


def _is_computed(facts: Facts, unit: Function, statement: ast.stmt) -> bool:
    """Whether a value comes of the batch, or of what the method has computed: not of sizes that it is handed."""
    value = _value(statement)
    nodes = [node for node in facts.own(unit) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    own = {node.id for node in nodes if not _is_of_kind(facts, node)}
    read = [node for node in walk(value) if isinstance(node, ast.Name)] if value is not None else []
    computed = (node for node in read if node.id in own or roles(facts.values(node)) & FROM_LOADER)
    return any(not _tells_kind(facts, node) for node in computed)


def _is_of_kind(facts: Facts, stored: ast.Name) -> bool:
    """`device` of `device = x.device`."""
    statement = facts.tree(stored).statement(stored)
    value = statement.value if isinstance(statement, ast.Assign) and stored in statement.targets else None
    return isinstance(value, ast.Attribute) and value.attr in _KIND


def _tells_kind(facts: Facts, node: ast.Name) -> bool:
    """Whether a tensor only says where another one is put, and as what: `self.table.to(x.device)`, `.type_as(x)`."""
    above = facts.tree(node).parents.get(node)
    if isinstance(above, ast.Attribute):
        return above.attr in _KIND
    if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute):
        return node in above.args and above.func.attr in _PUT
    return False


def _goes_on(unit: Function, value: ast.AST | None, name: str) -> bool:
    """Whether an attribute is given what comes of itself: `self.hidden = self.hidden.detach()`."""
    return value is not None and any(_reads(unit, node) == name for node in walk(value))


def _set_in_round(facts: Facts, loop: Loop) -> set[str]:
    """The attributes that each round of a loop gives a value: `model.hidden = None`, `model.init_hidden()`."""
    called = entered_beside_models(facts, loop)
    nodes = [*(node for part in loop.body for node in walk(part)), *(n for unit in called for n in facts.own(unit))]
    found = {n.attr for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    calls = (node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute))
    methods = {unit for call in calls for unit in facts.targets(call) if unit.name != "forward"}
    for unit in methods:
        found |= {name for statement, name in _stores(facts, unit) if not _goes_on(unit, _value(statement), name)}
    return found


def _value(statement: ast.stmt) -> ast.expr | None:
    return statement.value if isinstance(statement, _ASSIGNMENTS) else None
