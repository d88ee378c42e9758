"""What nothing reads of `rank, world_size = 0, 1`, and of `self.loader, self.sampler = loader, sampler`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.alone.pure import is_pure
from migrate.analysis.syntax import own_nodes, walk
from migrate.programs.marker import is_marked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.pen import Pen
    from migrate.alone.uses import Uses


@dataclass(frozen=True, slots=True)
class Pair:
    """One of the names, or attributes, of a statement, and what it is given."""

    target: ast.Name | ast.Attribute
    value: ast.expr


def unpacked(before: Uses, now: Uses, pen: Pen) -> bool:
    """Whether some pairs were taken out."""
    lost = before.attributes - now.attributes - now.words
    found = False
    for path, scope, tree in now.scopes():
        for statement, pairs in _pairs(tree):
            kept = [pair for pair in pairs if not _is_left(before, now, (path, scope, tree), lost, pair)]
            if not kept:
                pen.remove(statement)
            elif len(kept) < len(pairs):
                targets = ", ".join(ast.unparse(pair.target) for pair in kept)
                pen.replace(statement, f"{targets} = {', '.join(ast.unparse(pair.value) for pair in kept)}")
            found = found or len(kept) < len(pairs)
    return found


def _is_left(before: Uses, now: Uses, where: tuple[str, str, ast.AST], lost: frozenset[str], pair: Pair) -> bool:
    """Whether nothing reads any more what a pair gives."""
    if not is_pure(pair.value):
        return False
    if isinstance(pair.target, ast.Attribute):
        return pair.target.attr in lost
    path, scope, tree = where
    was_read = is_marked(pair.value) or before.was_read(path, scope, pair.target.id)
    return was_read and not now.is_read(tree, pair.target.id)


def _pairs(tree: ast.AST) -> Iterator[tuple[ast.Assign, list[Pair]]]:
    """The statements `a, b = x, y` of a scope; not those of which one part reads what another gives."""
    for node in own_nodes(tree):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        value = node.value if isinstance(node, ast.Assign) else None
        if not isinstance(target, ast.Tuple) or not isinstance(value, ast.Tuple) or len(target.elts) != len(value.elts):
            continue
        pairs = [
            Pair(t, v) for t, v in zip(target.elts, value.elts, strict=True) if isinstance(t, (ast.Name, ast.Attribute))
        ]
        given = {ast.unparse(pair.target) for pair in pairs}
        read = {ast.unparse(n) for n in walk(value) if isinstance(n, (ast.Name, ast.Attribute))}
        if isinstance(node, ast.Assign) and len(pairs) == len(target.elts) and not read & given:
            yield node, pairs
