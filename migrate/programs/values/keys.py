"""Keys that are the same on every process: written out, of what is made before a loop, of a dictionary with such.

losses = {"mse": mse(output, y), "l1": l1(output, y)}
for name, value in losses.items(): ...                     name is: the batch does not say which keys there are
for name, value in zip(names, (loss, error)): ...          so is this one
for label, value in zip(y.tolist(), errors): ...           label is not
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import is_stored, rounds, walk, writes
from migrate.programs.values.sources import Sources, called_by_name

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact

_OF_PROGRAM = frozenset({Role.MODEL, Role.CRITERION})  # gives a dictionary under names of its own


def is_everywhere(facts: Facts, loop: LoopFact, key: ast.expr) -> bool:
    """Whether a key that code of a loop reads is the same on every process."""
    made = writes(loop.node)
    if any(isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)) for node in walk(key)):
        return False
    names = (node for node in walk(key) if isinstance(node, ast.Name))
    return all(name.id not in made or _is_of_such(facts, loop, name) for name in names)


def _is_of_such(facts: Facts, loop: LoopFact, name: ast.Name) -> bool:
    """Whether a name goes through keys that every process has, in a loop around it, and is given nothing else."""
    around = [n for n in facts.tree(name).loops(name) if isinstance(n, ast.For) and name.id in writes(n.target)]
    if not around or around[0] is loop.node:
        return False
    over = [n for n in rounds(loop.node) if isinstance(n, (ast.For, ast.comprehension)) and name.id in writes(n.target)]
    targets = {node for each in over for node in walk(each.target)}
    stored = {n for n in rounds(loop.node) if isinstance(n, ast.Name) and n.id == name.id and is_stored(n)}
    return stored <= targets and _gives_keys(facts, loop, around[0], name.id)


def _gives_keys(facts: Facts, loop: LoopFact, through: ast.For, name: str) -> bool:
    at = _position(through.target, name)
    match through.iter:
        case ast.Call(args=given) if "builtins.zip" in called_by_name(facts, through.iter):
            is_long = all(isinstance(each, (ast.Tuple, ast.List)) for i, each in enumerate(given) if i != at)
            return is_long and at is not None and at < len(given) and _are_keys(facts, loop, given[at])
        case ast.Tuple(elts=rows) | ast.List(elts=rows) if at is not None:
            return all(_is_key_of_row(facts, loop, row, at) for row in rows)
        case ast.Call(func=ast.Attribute(value=base, attr="items"), args=[]):
            is_key = isinstance(through.target, ast.Tuple) and ast.unparse(through.target.elts[0]) == name
            return is_key and _has_such(facts, loop, base)
    return at is None and _are_keys(facts, loop, through.iter)


def _position(target: ast.expr, name: str) -> int | None:
    """Where a name stands in what a loop takes apart; nowhere: it is all of it."""
    names = [ast.unparse(each) for each in target.elts] if isinstance(target, ast.Tuple) else []
    return names.index(name) if name in names else None


def _is_key_of_row(facts: Facts, loop: LoopFact, row: ast.expr, at: int) -> bool:
    """`"loss"` of `("loss", loss)`."""
    return isinstance(row, (ast.Tuple, ast.List)) and at < len(row.elts) and is_everywhere(facts, loop, row.elts[at])


def _are_keys(facts: Facts, loop: LoopFact, node: ast.expr) -> bool:
    """Whether what gives keys one by one gives the same ones on every process."""
    match node:
        case ast.Call(func=ast.Attribute(value=base, attr="keys"), args=[]):
            return _has_such(facts, loop, base)
        case ast.Name() as base if base.id in writes(loop.node):
            return _has_such(facts, loop, base)
        case ast.Name() | ast.List() | ast.Tuple() as base:
            return all(is_everywhere(facts, loop, each) for each in getattr(base, "elts", ()))
    return False


def _has_such(facts: Facts, loop: LoopFact, base: ast.expr) -> bool:
    """Whether an expression is a dictionary whose keys are written out, or are those of a model or a loss."""
    sources = facts.once(Sources)
    waiting, seen = [base], {base}
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Dict):
            if not all(key is not None and isinstance(key, ast.Constant) for key in node.keys):
                return False
            continue
        given = sources.given(node)
        if not given.expressions:
            if not (isinstance(node, ast.Call) and roles(facts.values(node.func)) & _OF_PROGRAM):
                return False
        waiting += [each for each in given.expressions if each not in seen]
        seen.update(given.expressions)
    return True
