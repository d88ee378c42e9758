"""The branches in which a program chooses its device."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.devices import SET_DEVICE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts


def ways(
    facts: Facts, statement: ast.If, tests: tuple[ast.expr, ...]
) -> Iterator[tuple[tuple[ast.expr, ...], ast.stmt | None]]:
    """The tests that lead to each branch, of an `if` inside of one, too, and what it assigns; None: that and more."""
    for test, body in branches(statement):
        asked = tests if test is None else (*tests, test)
        assigned = [s for s in body if not _sets_device(facts, s)]
        if len(assigned) == 1 and isinstance(assigned[0], ast.If):
            yield from ways(facts, assigned[0], asked)
            if not _is_whole(assigned[0]):
                yield asked, None
        else:
            yield asked, assigned[0] if len(assigned) == 1 else None


def _is_whole(statement: ast.If) -> bool:
    """Whether one of the branches is always taken."""
    return [test for test, _ in branches(statement)][-1] is None


def branches(statement: ast.If) -> Iterator[tuple[ast.expr | None, list[ast.stmt]]]:
    """The branches of `if ... elif ... else`, each with its test; None: that of the `else`."""
    yield statement.test, statement.body
    if len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If):
        yield from branches(statement.orelse[0])
    elif statement.orelse:
        yield None, statement.orelse


def _sets_device(facts: Facts, statement: ast.stmt) -> bool:
    """`torch.cuda.set_device(i)`, also under a condition."""
    if isinstance(statement, ast.If):
        return all(_sets_device(facts, inner) for inner in statement.body + statement.orelse)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return bool(facts.called(statement.value) & SET_DEVICE)
    return False
