"""Hooks that a function puts in and takes out again, around a run of its own: `summary(model)`, `trace(model, x)`.

handle = layer.register_forward_hook(keep)      hooks.append(layer.register_forward_hook(keep))
model(example)                                  model(example)
handle.remove()                                 for hook in hooks:
                                                    hook.remove()
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk
from migrate.analysis.texts import text_of
from migrate.analysis.units import Function
from migrate.programs.reach.callees import entered, reached

if TYPE_CHECKING:
    from collections.abc import Collection

    from migrate.analysis.facts import Facts


def is_for_once(facts: Facts, call: ast.Call, ran: Collection[ast.AST]) -> bool:
    """Whether the function that puts a hook in takes it out, and neither runs some code nor is called by that."""
    unit = facts.unit(call)
    while isinstance(unit, Function) and unit.parent is not None:
        unit = unit.parent
    if not isinstance(unit, Function) or not _is_taken_out(unit, call):
        return False
    inside = reached(facts, (each for code in ran for each in entered(facts, code)))
    return unit not in inside and reached(facts, [unit]).isdisjoint(map(facts.unit, ran))


def _is_taken_out(unit: Function, call: ast.Call) -> bool:
    """Whether a function removes a hook by the name that it has there, or all that are in the list that it goes to."""
    nodes = list(walk(unit.node))
    removed: set[str] = set().union(*map(_removed, nodes))
    loops = (node for node in nodes if isinstance(node, (ast.For, ast.AsyncFor)))
    removed |= {text_of(loop.iter) for loop in loops if text_of(loop.target) in removed}
    return any(not removed.isdisjoint(_holding(node, call)) for node in nodes)


def _removed(node: ast.AST) -> set[str]:
    match node:
        case ast.Call(func=ast.Attribute(value=handle, attr="remove"), args=[]):
            return {text_of(handle)}
    return set()


def _holding(node: ast.AST, call: ast.Call) -> set[str]:
    """What a statement, or a call of `append`, puts a hook into."""
    match node:
        case ast.Assign(targets=targets, value=value) if value is call or _lists(value, call):
            return {text_of(target) for target in targets}
        case ast.Call(func=ast.Attribute(value=listed, attr="append"), args=[given]) if given is call:
            return {text_of(listed)}
    return set()


def _lists(value: ast.expr, call: ast.Call) -> bool:
    """`[layer.register_forward_hook(keep) for layer in layers]`, and a list that is written out."""
    return (isinstance(value, ast.ListComp) and value.elt is call) or (
        isinstance(value, ast.List) and call in value.elts
    )
