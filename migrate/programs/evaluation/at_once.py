"""Loops over all batches of a loader in a list: the pass over the loader is over before the loop begins.

`for x, y in list(loader):`, `for x, y in [*loader]:`, and `batches = list(loader)` above. What rows of a batch count is
not known any more by then.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import reads, walk
from migrate.programs.training.begun import WHOLE
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


def at_once(facts: Facts, iterated: ast.expr) -> bool:
    """Whether a loop runs over a list of batches."""
    return any(_lists(facts, node) or is_list(facts, node) for node in walk(iterated))


def is_list(facts: Facts, node: ast.AST, depth: int = 4) -> bool:
    """Whether a name, or an attribute, may be one."""
    if not isinstance(node, (ast.Name, ast.Attribute)) or not depth:
        return False
    given = facts.once(Sources).given(node).expressions
    return any(
        _lists(facts, part) or is_list(facts, part, depth - 1) for each in given for part in (each, *_inside(each))
    )


def _inside(node: ast.expr) -> list[ast.expr]:
    """The elements of a list that is written out: `[*loader]`."""
    return node.elts if isinstance(node, (ast.List, ast.Tuple)) else []


def _lists(facts: Facts, node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return bool(facts.called(node) & WHOLE) and any(facts.loaders(facts.values(each)) for each in node.args)
    return isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Load) and bool(facts.loaders(facts.values(node)))


def named_loaders(facts: Facts, loop: LoopFact) -> tuple[ast.expr, ...]:
    """The loaders in the header of a loop, by their names; none where what it runs over is not all said by these.

    Those of a bar that is made above for this loop alone, `bar = tqdm(loader)`, are named there.
    """
    if not isinstance(loop.node, ast.For):
        return ()
    named = tuple(_named(facts, loop.node.iter))
    over = tuple(node for node in named if Role.LOADER in roles(facts.values(node)) and not is_list(facts, node))
    found = {value.origin for node in over for value in facts.values(node)}
    is_all = all(roles(facts.values(node)) == {Role.LOADER} for node in over) and loop.loaders <= found
    return over if is_all else ()


def _named(facts: Facts, expression: ast.expr, depth: int = 2) -> Iterator[ast.expr]:
    """The names and attributes in an expression, and of an iterator that has a name those where it is made."""
    for node in walk(expression):
        if not isinstance(node, (ast.Name, ast.Attribute)):
            continue
        made = _made_for(facts, node) if depth and isinstance(node, ast.Name) else None
        if made is None:
            yield node
        else:
            yield from _named(facts, made, depth - 1)


def _made_for(facts: Facts, name: ast.Name) -> ast.Call | None:
    """The call that makes an iterator, in the same function and for no other loop; None: it is not one, or not seen."""
    if roles(facts.values(name)) != {Role.ITERATOR}:
        return None
    made, own = facts.once(Sources).given(name).only, list(facts.own(facts.unit(name)))
    if not isinstance(made, ast.Call) or made not in own:
        return None
    loops = [node for node in own if isinstance(node, (ast.For, ast.comprehension)) and name.id in reads(node.iter)]
    return made if len(loops) == 1 else None
