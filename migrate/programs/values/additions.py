"""What a loop adds up: `total += x`, `total = total + x`, `total.add_(x)`, there or in functions that it calls."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import rounds, same, walk
from migrate.programs.values.assigned import assigned
from migrate.programs.values.below import below
from migrate.programs.values.kept import is_adding, is_place
from migrate.programs.values.numbers import is_text
from migrate.programs.values.of_all import is_of_all

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact

_PRODUCTS = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)


def grown(facts: Facts, loop: LoopFact) -> dict[str, list[ast.expr]]:
    """What is added to each name: `total += x`, `total = total + x`."""
    found: dict[str, list[ast.expr]] = {}
    for target, value in added(facts, loop.node):
        if is_place(target) and holds_numbers(facts, value):
            found.setdefault(ast.unparse(target), []).append(value)
    return found


def added(facts: Facts, code: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What code adds something to, and what it adds.

    In functions that it calls, what is added to places that it has, too.
    """
    for node in rounds(code):
        yield from _added(facts, node)
    for each in below(facts, code):
        there = (found for node in facts.own(each.unit) for found in _added(facts, node))
        yield from ((target, value) for target, value in there if each.shares(ast.unparse(target)))


def _added(facts: Facts, node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """The same of one statement; what is trained, or a batch, is no sum, though it is added to where it stands."""
    found = additions(node)
    if isinstance(node, ast.Expr):
        return [(to, value) for to, value in found if roles(facts.values(to)) == {Role.TENSOR}]
    return found


def additions(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of a statement that adds to them, and what it adds: `total, n = total + loss, n + 1`, too."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return [(node.target, node.value)]
    if isinstance(node, ast.Expr):
        return added_in_place(node.value)
    if not isinstance(node, ast.Assign):
        return []
    target, value = node.targets[0], node.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = list(zip(target.elts, value.elts, strict=True))
    return [
        (to, by.right)
        for to, by in pairs
        if isinstance(by, ast.BinOp) and isinstance(by.op, ast.Add) and same(to, by.left)
    ]


def added_in_place(node: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """`total.add_(loss)`."""
    if not isinstance(node, ast.Call) or node.keywords or len(node.args) != 1 or not is_adding(node.func):
        return []
    return [(node.func.value, node.args[0])] if isinstance(node.func, ast.Attribute) else []


def counted(facts: Facts, loop: ast.AST) -> Iterator[str]:
    """The names that go up by a number in a loop, which is not the batch's: `steps += 1`, `seen += batch_size`."""
    for target, value in added(facts, loop):
        if not holds_numbers(facts, value) and not is_text(facts, value):
            yield ast.unparse(target)


def holds_numbers(facts: Facts, node: ast.expr) -> bool:
    """Whether what is added comes of a batch, or of what nobody knows of one; text does not add up."""
    if is_of_all(facts, node) or any(is_text(facts, part) for part in _summands(node)):
        return False
    if roles(facts.values(node)) & (FROM_LOADER | {Role.TENSOR}):
        return True
    return _is_of_batch(facts, node)


def multiplies(facts: Facts, node: ast.expr, sums: Collection[str]) -> bool:
    """Whether something that is added is a product of what steps have added up before: `variance += d * (x - mean)`.

    Of each process's share it is another one than of the whole, so that the shares do not add up.
    """
    products = (part for part in walk(node) if isinstance(part, ast.BinOp) and isinstance(part.op, _PRODUCTS))
    return any(_is_mixed(facts, product, sums) for product in products)


def _is_mixed(facts: Facts, product: ast.BinOp, sums: Collection[str]) -> bool:
    sides = (product.left, product.right)
    rest = [_rests_on(facts, side, sums) for side in sides]
    if isinstance(product.op, ast.Pow):
        return any(rest)
    return any(rest) and all(sums_up or _is_of_batch(facts, side) for side, sums_up in zip(sides, rest, strict=True))


def _rests_on(facts: Facts, node: ast.expr, sums: Collection[str]) -> bool:
    """Whether an expression reads a sum, or a name that is given what does."""
    for inner in walk(node):
        if isinstance(inner, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(inner) in sums:
            return True
        given = assigned(facts, inner) if isinstance(inner, ast.Name) else ()
        parts = (part for value in given if value is not None for part in walk(value))
        if any(isinstance(part, ast.expr) and is_place(part) and ast.unparse(part) in sums for part in parts):
            return True
    return False


def _is_of_batch(facts: Facts, node: ast.expr) -> bool:
    parts = (part for part in walk(node) if isinstance(part, ast.expr) and roles(facts.values(part)) & FROM_LOADER)
    return any(not is_of_all(facts, part) for part in parts)


def _summands(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from _summands(node.left)
        yield from _summands(node.right)
    else:
        yield node
