"""What the statements after a loop read of what it has left, before they give it another value."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.syntax import DEFINITIONS, blocks, reads, walk, writes
from migrate.programs.values.kept import root_of

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class ReadAfter:
    """What is read by code that runs one statement after the other."""

    names: set[str] = field(default_factory=set)  # and attributes and items, as they are written
    whole: set[str] = field(default_factory=set)  # dictionaries that are read other than by a key that is written out

    def has(self, name: str) -> bool:
        """Whether a name, or an item of one, is read."""
        return name in self.names or name.partition("[")[0] in self.whole

    def over(self, statements: Iterable[ast.stmt], new: set[str]) -> None:
        """Add what statements read; `new`: names that have another value by then."""
        for statement in statements:
            inner = list(blocks(statement))
            if isinstance(statement, (ast.For, ast.While)):
                new |= writes(statement)  # another loop sets its own names before it reads them
                self._take(statement, new)
            elif inner and not isinstance(statement, DEFINITIONS):
                for header in ast.iter_child_nodes(statement):
                    if isinstance(header, (ast.expr, ast.withitem)):
                        self._take(header, new)
                for block in inner:
                    self.over(block, {*new})
            else:
                self._take(statement, new | writes(statement))
                if isinstance(statement, ast.Assign):
                    new |= _names(statement.targets) - reads(statement.value)

    def _take(self, node: ast.AST, new: set[str]) -> None:
        self.names |= reads(node) - new
        self.names |= {text for text in map(ast.unparse, _read_parts(node)) if root_of(text) not in new}
        self.whole |= _read_whole(node) - new


def _read_parts(node: ast.AST) -> list[ast.expr]:
    """The attributes and items that code reads: not those that only get another value, `log["loss"] = 0`."""
    inside = list(walk(node))
    added_to = {inner.target for inner in inside if isinstance(inner, ast.AugAssign)}
    parts = (inner for inner in inside if isinstance(inner, (ast.Attribute, ast.Subscript)))
    return [part for part in parts if isinstance(part.ctx, ast.Load) or part in added_to]


def _names(targets: Iterable[ast.expr]) -> set[str]:
    """The plain names among the targets of an assignment, also those in a tuple."""
    parts = (part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target]))
    return {part.id for part in parts if isinstance(part, ast.Name)}


def _read_whole(node: ast.AST) -> set[str]:
    by_key = {
        id(inner.value)
        for inner in walk(node)
        if isinstance(inner, ast.Subscript) and isinstance(inner.slice, ast.Constant)
    }
    return {
        ast.unparse(inner)
        for inner in walk(node)
        if isinstance(inner, (ast.Name, ast.Attribute)) and isinstance(inner.ctx, ast.Load) and id(inner) not in by_key
    }
