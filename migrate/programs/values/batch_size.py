"""How a program asks for the number of samples of a batch: `x.size(0)`, `len(x)`, `x.shape[0]`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.values.sources import Sources, called_by_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from migrate.analysis.facts import Facts


def is_size(facts: Facts, node: ast.expr) -> bool:
    """`x.size(0)`, `x.shape[0]`, `len(x)`, `x.numel()`, twice as many, or a name of these alone."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sizes = [side for side in (node.left, node.right) if not isinstance(side, ast.Constant)]
        return bool(sizes) and all(is_size(facts, side) for side in sizes)
    if isinstance(node, ast.Call):
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr in ("size", "numel")
        return is_method or "builtins.len" in called_by_name(facts, node)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, (ast.Attribute, ast.Call)) and _is_shape(node.value)
    return _by_name(facts, node, is_size)


def counts_rows(facts: Facts, node: ast.expr) -> bool:
    """`len(x)`, `x.size(0)`, `x.shape[0]`, or a name of these alone."""
    match node:
        case ast.Call(func=ast.Attribute(attr="size"), args=[ast.Constant(value=0)]):
            return True
        case ast.Call(args=[_]):
            return "builtins.len" in called_by_name(facts, node)
        case ast.Subscript(value=whole, slice=ast.Constant(value=0)) if isinstance(whole, (ast.Attribute, ast.Call)):
            return _is_shape(whole)
        case ast.Name():
            return _by_name(facts, node, counts_rows)
    return False


def _by_name(facts: Facts, node: ast.expr, is_meant: Callable[[Facts, ast.expr], bool]) -> bool:
    """Whether all that a name may have been given is what is asked for."""
    given = facts.once(Sources).given(node)
    return given.complete and bool(given.expressions) and all(is_meant(facts, each) for each in given.expressions)


def _is_shape(node: ast.Attribute | ast.Call) -> bool:
    name = node.func if isinstance(node, ast.Call) else node
    return isinstance(name, ast.Attribute) and name.attr in ("shape", "size")
