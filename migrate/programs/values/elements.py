"""The elements of lists that a program writes out, and what a loop or comprehension gives to a name.

`edges = [n * epoch for epoch in (30, 60)]`, then `for edge, rate in zip(edges, rates)`, `edges[0]`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import targets_of, walk
from migrate.programs.values.fillings import Fillings
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

#: Functions that give the elements that they are given, or sums of them.
_ALIKE = frozenset(
    {
        *(f"builtins.{name}" for name in "list tuple set sorted reversed iter".split()),
        *(f"numpy.{name}" for name in "array asarray cumsum sort".split()),
        "itertools.accumulate",
    }
)


def elements(facts: Facts, held: ast.expr, at: ast.expr | None = None) -> list[ast.expr]:
    """The expressions that stand in a list, here or where its name was given it; `at`: the index of one."""
    sources = facts.once(Sources)
    found: list[ast.expr] = []
    seen: set[ast.expr] = set()
    waiting = [held]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            found += _standing(node.elts, at)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            found.append(node.elt)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            waiting += [node.left, node.right]
        elif isinstance(node, ast.BinOp):  # of an array each element is one of such numbers
            waiting += [node.left] if isinstance(node.left, ast.List) else []
            found += [] if isinstance(node.left, ast.List) else [node]
        elif isinstance(node, ast.Call) and facts.called(node) & _ALIKE:
            waiting += node.args[:1]
        else:
            waiting += sources.given(node).expressions
            found += _put(facts, node, at) if isinstance(node, (ast.Name, ast.Attribute)) else []
    return found


def _put(facts: Facts, held: ast.Name | ast.Attribute, at: ast.expr | None) -> Iterator[ast.expr]:
    """What is put into a list or a dictionary: `rates[i] = rate`, `rates.append(rate)`; not under another key."""
    for filling in facts.once(Fillings).of(held):
        if isinstance(filling, ast.Call):
            is_added = isinstance(filling.func, ast.Attribute) and filling.func.attr == "append"
            yield from filling.args[:1] if is_added else ()
            continue
        for target in targets_of(filling):
            is_item = isinstance(target, ast.Subscript) and isinstance(target.value, (ast.Name, ast.Attribute))
            if isinstance(target, ast.Subscript) and is_item and not _are_apart(target.slice, at):
                yield filling.value


def _are_apart(one: ast.expr, other: ast.expr | None) -> bool:
    """Whether two keys are written out, and others."""
    if not isinstance(one, ast.Constant) or not isinstance(other, ast.Constant):
        return False
    return bool(one.value != other.value)


def _standing(parts: list[ast.expr], at: ast.expr | None) -> list[ast.expr]:
    if isinstance(at, ast.Constant) and isinstance(at.value, int):
        if not any(isinstance(part, ast.Starred) for part in parts):
            return parts[at.value : at.value + 1]
    return parts


def gone_through(facts: Facts, name: ast.Name) -> list[ast.expr]:
    """What a name may stand for in the innermost loop or comprehension around it that goes through a list by it."""
    for above in facts.tree(name).up(name):
        for part in [above] if isinstance(above, ast.For) else getattr(above, "generators", []):
            if _is_in(name, part.target) and name not in set(walk(part.iter)):
                return _each(facts, part.target, part.iter, name)
    return []


def _is_in(name: ast.Name, target: ast.expr) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id == name.id for inner in walk(target))


def _each(facts: Facts, target: ast.expr, over: ast.expr, name: ast.Name) -> list[ast.expr]:
    """What the part of a target that is a name is given by an iteration."""
    if isinstance(target, ast.Name):
        return elements(facts, over)
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    place = next((number for number, part in enumerate(parts) if _is_in(name, part)), 0)
    called = facts.called(over) if isinstance(over, ast.Call) else frozenset()
    if isinstance(over, ast.Call) and "builtins.zip" in called and len(over.args) == len(parts):
        return _each(facts, parts[place], over.args[place], name)
    if isinstance(over, ast.Call) and "builtins.enumerate" in called and over.args:
        return _each(facts, parts[place], over.args[0], name) if place == 1 else []
    tuples = [each for each in elements(facts, over) if isinstance(each, (ast.Tuple, ast.List))]
    return [each.elts[place] for each in tuples if len(each.elts) == len(parts)]
