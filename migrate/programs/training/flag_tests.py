"""Tests that ask for a flag, `if train:`, `if optimizer is not None:`, and whether they hold for a value of it."""

from __future__ import annotations

import ast
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Other(Enum):
    """A value that is not a constant, but certainly not None."""

    OBJECT = "an object"


def implied(test: ast.expr, *, holds: bool) -> Iterator[tuple[ast.expr, bool]]:
    """The tests that are answered by one that holds or fails: both of `a and b` that holds, of `a or b` that fails."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And if holds else ast.Or):
        for value in test.values:
            yield from implied(value, holds=holds)
    else:
        yield test, holds


def subjects(test: ast.expr) -> Iterator[ast.expr]:
    """What a test asks for: the names and attributes that are compared, or asked for their truth."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from subjects(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from subjects(test.operand)
    elif isinstance(test, ast.Compare):
        yield from (part for part in (test.left, *test.comparators) if isinstance(part, (ast.Name, ast.Attribute)))
    elif not isinstance(test, ast.Constant):
        yield test


def truth(test: ast.expr, subject: ast.expr, value: object) -> bool | None:
    """Whether a test holds where its subject has a value; None: not known."""
    if test is subject:
        return True if value is Other.OBJECT else bool(value)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = truth(test.operand, subject, value)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and test.left is subject:
        return _compared(test.ops[0], value, test.comparators[0])
    return None


def _compared(op: ast.cmpop, value: object, right: ast.expr) -> bool | None:
    is_negative = isinstance(op, (ast.NotEq, ast.IsNot, ast.NotIn))
    if isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)) and isinstance(right, ast.Constant):
        if value is Other.OBJECT and right.value is not None:
            return None
        return (value == right.value) is not is_negative
    if isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, (ast.Tuple, ast.List, ast.Set)):
        if value is Other.OBJECT or not all(isinstance(element, ast.Constant) for element in right.elts):
            return None
        members = [element.value for element in right.elts if isinstance(element, ast.Constant)]
        return (value in members) is not is_negative
    return None
