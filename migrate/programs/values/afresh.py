"""Whether a name has an object of its own in each step: what an earlier step has put into it is not there any more.

delta = torch.zeros_like(x)
delta.data = clamp(delta + alpha * sign(grad))
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS, LOOPS, reads, walk, writes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from migrate.analysis.syntax import Tree


def is_afresh(tree: Tree, statement: ast.stmt, name: str, step: ast.AST) -> bool:
    """Whether each step of a loop that comes to a statement has given a name its value before anything reads it.

    It has where the value is given above the statement, under tests that come out alike in each step at most.
    """
    made = next(_made_above(tree, statement, name, step), None)
    if made is None:
        return False
    around = list(_up(tree, made, step))
    if isinstance(step, FUNCTIONS) and not around and not _is_shared(step, name):
        return True  # what is read above is what the function was handed: `x = x.detach()`
    if not all(isinstance(above, ast.If) and _is_alike(above.test, step) for above in around):
        return False
    others = {id(node) for above in around for other in _others(above, made) for node in ast.walk(other)}
    return not any(
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
        and node.lineno <= (made.end_lineno or made.lineno)
        and id(node) not in others
        for node in ast.walk(step)
    )


def begins_in_each_step(tree: Tree, statement: ast.stmt, name: str, is_per_batch: Callable[[ast.AST], bool]) -> bool:
    """Whether a number that a statement of a step adds to begins anew in each: it counts groups, say, and no steps.

    i = 0
    for group in optimizer.param_groups:
        group["lr"] = rate * rates[i]
        i += 1
    """
    around = (node for node in tree.up(statement) if isinstance(node, (*FUNCTIONS, *LOOPS)))
    step = next((node for node in around if isinstance(node, FUNCTIONS) or not is_per_batch(node)), None)
    return step is not None and is_afresh(tree, statement, name, step)


def _is_shared(function: ast.AST, name: str) -> bool:
    """Whether a name of a function is one of the code around it."""
    said = (node.names for node in ast.walk(function) if isinstance(node, (ast.Global, ast.Nonlocal)))
    return any(name in names for names in said)


def _made_above(tree: Tree, statement: ast.stmt, name: str, step: ast.AST) -> Iterator[ast.stmt]:
    """The statements above one, in its block or around it, that give a name its value."""
    for inner in (statement, *_up(tree, statement, step)):
        for above in tree.block(inner):
            if above is inner:
                break
            targets = above.targets if isinstance(above, ast.Assign) else ()
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                yield above


def _up(tree: Tree, statement: ast.stmt, step: ast.AST) -> Iterator[ast.stmt]:
    """The statements around one, inside of the step."""
    for above in tree.up(statement):
        if above is step:
            return
        if isinstance(above, ast.stmt):
            yield above


def _is_alike(test: ast.expr, step: ast.AST) -> bool:
    """Whether a test asks for nothing that a step changes."""
    if any(isinstance(node, ast.Call) for node in walk(test)):
        return False
    stored = {ast.unparse(n) for n in walk(step).of(ast.Attribute) if isinstance(n.ctx, ast.Store)}
    asked = {ast.unparse(n) for n in walk(test).of(ast.Attribute)}
    return not reads(test) & writes(step) and not asked & stored


def _others(branch: ast.stmt, inside: ast.AST) -> list[ast.stmt]:
    """The part of a branch that runs where the one that holds a node does not."""
    assert isinstance(branch, ast.If)
    is_in_body = any(node is inside for statement in branch.body for node in ast.walk(statement))
    return branch.orelse if is_in_body else branch.body
