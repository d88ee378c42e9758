"""Which place reads a name first, in what follows a statement."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import blocks, own_expressions, walk
from migrate.programs.values.accumulators import statements_after

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


def names_of(node: ast.AST) -> Sequence[ast.Name]:
    """Every name in some code."""
    return walk(node).of(ast.Name)


def first_read(name: str, later: list[ast.stmt], inside: set[int]) -> ast.Name | None:
    """The first place outside the model's call that reads a name; None if it is given a new value before."""
    for statement in later:
        found = [n for n in names_of(statement) if n.id == name and id(n) not in inside]
        grown = isinstance(statement, ast.AugAssign) and any(n is statement.target for n in found)
        read = [n for n in found if isinstance(n.ctx, ast.Load)]
        if read or grown:
            return min(read or found, key=lambda node: (node.lineno, node.col_offset))
        if isinstance(statement, ast.Assign) and found:
            return None
    return None


def read_after(facts: Facts, loop: LoopFact, name: str) -> ast.Name | None:
    """The first place after the loop that reads the last batch, or its results, under a name."""
    read, _ = _met(statements_after(facts, loop.node), name)
    return read


def _met(statements: Sequence[ast.stmt], name: str) -> tuple[ast.Name | None, bool]:
    """The first place that reads a name, and whether the name is certainly given another value before."""
    for statement in statements:
        header = [n for part in own_expressions(statement) for n in names_of(part) if n.id == name]
        for node in header:
            if isinstance(node.ctx, ast.Load):
                return node, False
        if header:
            return None, True
        for block in blocks(statement):
            read, is_new = _met(block, name)
            if read is not None or (is_new and isinstance(statement, (ast.With, ast.AsyncWith))):
                return read, is_new
    return None, False
