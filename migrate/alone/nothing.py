"""Names that have nothing but None where they had something before: `sampler = None`. What asks for it is answered."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_none, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.pen import Pen
    from migrate.alone.uses import Uses


def reads_of_none(before: Uses, now: Uses) -> Iterator[tuple[str, list[ast.Name]]]:
    """The reads of each name that has nothing but None, and had something before, with the path of the file."""
    for path, scope, tree in now.scopes():
        for name, values in now.assigned(tree).items():
            if values and all(map(is_none, values)) and before.had_other(path, scope, name):
                yield path, now.reads(tree, name)


def answered(before: Uses, now: Uses, pen: Pen) -> bool:
    """Whether some questions for None were answered."""
    found = [_answer_all(now, pen, path, reads) for path, reads in reads_of_none(before, now)]
    return any(found)


def _answer_all(now: Uses, pen: Pen, path: str, reads: list[ast.Name]) -> bool:
    """Answer every read of a name, but for those in branches that go away by it."""
    branches = [branch for read in reads if (branch := _branch(now, path, read)) is not None]
    lost = {id(node) for branch, truth in branches for part in _lost(branch, truth) for node in walk(part)}
    asking = [read for read in reads if id(read) not in lost]
    if not asking or not all(_can_answer(now, path, read) for read in asking):
        return False
    for read in asking:
        _answer(now, pen, path, read)
    return True


def _branch(now: Uses, path: str, read: ast.Name) -> tuple[ast.If, bool] | None:
    """`if sampler is not None:`, or `if sampler:`, with what it comes to."""
    parent = now.parent(path, read)
    if isinstance(parent, ast.If) and parent.test is read:
        return parent, False
    above = now.parent(path, parent) if isinstance(parent, ast.Compare) and _is_for_none(parent) else None
    if isinstance(above, ast.If) and isinstance(parent, ast.Compare) and above.test is parent:
        return above, isinstance(parent.ops[0], ast.Is)
    return None


def _lost(branch: ast.If, truth: bool) -> list[ast.stmt]:
    return branch.orelse if truth else branch.body


def _is_for_none(node: ast.Compare) -> bool:
    return len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)) and is_none(node.comparators[0])


def _can_answer(now: Uses, path: str, read: ast.Name) -> bool:
    parent = now.parent(path, read)
    if isinstance(parent, ast.keyword):
        return parent.arg in ("sampler", "batch_sampler")
    if isinstance(parent, ast.Compare) and _is_for_none(parent):
        above = now.parent(path, parent)
        return not isinstance(above, (ast.While, ast.BoolOp)) or _is_idle(above, parent)
    return _branch(now, path, read) is not None


def _is_idle(above: ast.While | ast.BoolOp, asked: ast.Compare) -> bool:
    """Whether the other part of `shuffle and sampler is None` is what it comes to."""
    truth = isinstance(asked.ops[0], ast.Is)
    return isinstance(above, ast.BoolOp) and len(above.values) == 2 and isinstance(above.op, ast.And) == truth


def _answer(now: Uses, pen: Pen, path: str, read: ast.Name) -> None:
    parent = now.parent(path, read)
    if (found := _branch(now, path, read)) is not None:
        branch, truth = found
        if branch.body if truth else branch.orelse:
            pen.fold(branch, "body" if truth else "orelse")
        else:
            pen.remove(branch)
    elif isinstance(parent, ast.keyword):
        call = now.parent(path, parent)
        assert isinstance(call, ast.Call)
        pen.remove_argument(call, parent)
    else:
        assert isinstance(parent, ast.Compare)
        above = now.parent(path, parent)
        if isinstance(above, ast.BoolOp):
            pen.rewrite(above, "{it}", it=next(part for part in above.values if part is not parent))
            return
        pen.rewrite(parent, str(isinstance(parent.ops[0], ast.Is)))
