"""Keys that are the same on every process: written out, of what is made before a loop, of a dictionary with such.

losses = {"mse": mse(output, y), "l1": l1(output, y)}
for name, value in losses.items(): ...                     name is: the batch does not say which keys there are
for label, value in zip(y.tolist(), errors): ...           label is not
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import is_stored, rounds, walk, writes
from migrate.programs.values.sources import Sources

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
    match through.iter:
        case ast.Call(func=ast.Attribute(value=base, attr="items"), args=[]):
            is_key = isinstance(through.target, ast.Tuple) and ast.unparse(through.target.elts[0]) == name
            return is_key and _has_such(facts, loop, base)
        case ast.Call(func=ast.Attribute(value=base, attr="keys"), args=[]):
            return _has_such(facts, loop, base)
        case ast.Name() as base if base.id in writes(loop.node):
            return _has_such(facts, loop, base)
        case ast.Name() | ast.List() | ast.Tuple() as base:
            return all(is_everywhere(facts, loop, node) for node in getattr(base, "elts", ()))
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
