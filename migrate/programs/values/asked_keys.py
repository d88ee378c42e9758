"""Checkpoints whose keys a program compares with those of a model, and leaves out what the model does not have.

{key: value for key, value in saved.items() if key in own}
for key, value in saved.items():
    if key not in own: continue
for key in own:
    if key in saved: own[key].copy_(saved[key])
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import COMPREHENSIONS, binds, root_name, writes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_VIEWS = frozenset({"items", "keys"})


def asked_keys(facts: Facts, unit: Unit) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """The checkpoints whose keys a unit asks for, with the statements above which they must have these."""
    for node in facts.own(unit).of(ast.Compare):
        if not all(isinstance(op, (ast.In, ast.NotIn)) for op in node.ops):
            continue
        for asked in (_viewed(node.comparators[0]), *_gone_through(facts, node)):
            if Role.CHECKPOINT in roles(facts.values(asked)):
                yield _above(facts, asked), asked


def _gone_through(facts: Facts, test: ast.Compare) -> Iterator[ast.expr]:
    """What the loops and comprehensions around a test go through for the key that it asks about."""
    for node in facts.tree(test).up(test):
        rounds: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(node, COMPREHENSIONS):
            rounds = [(each.target, each.iter) for each in node.generators]
        elif isinstance(node, ast.For):
            rounds = [(node.target, node.iter)]
        yield from (_viewed(through) for target, through in rounds if root_name(test.left) in writes(target))


def _viewed(node: ast.expr) -> ast.expr:
    """`saved` of `saved.items()` and `saved.keys()`."""
    match node:
        case ast.Call(func=ast.Attribute(value=viewed, attr=name), args=[]) if name in _VIEWS:
            return viewed
    return node


def _above(facts: Facts, asked: ast.expr) -> ast.stmt:
    """The statement that asks, or the outermost of the loops around it in which the checkpoint stays the same."""
    tree = facts.tree(asked)
    statement = tree.statement(asked)
    for loop in tree.loops(asked):
        if root_name(asked) in binds(loop):
            break
        statement = loop
    return statement
