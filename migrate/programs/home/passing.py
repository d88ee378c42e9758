"""Containers that only go through objects and are gone: `for net in [self.G, self.D]: net.eval()`.

What they hold they have taken from the names that prepare gives other objects. They keep the raw ones only if they were
made before prepare and are read behind it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import COMPREHENSIONS, FUNCTIONS, writes
from migrate.analysis.units import Function
from migrate.programs.reach.outsiders import units_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree
    from migrate.analysis.units import Unit

_MADE = (Role.MODEL, Role.OPTIMIZER, Role.SCHEDULER, Role.LOADER)
_WRITTEN_OUT = (ast.List, ast.Tuple, ast.Dict, ast.BinOp, ast.Call)
_THROUGH = frozenset(f"builtins.{name}" for name in "zip enumerate reversed".split())
_OF_DICTIONARIES = frozenset({"values", "items"})


def is_passing(facts: Facts, home: Unit, holder: ast.AST) -> bool:
    """Whether a container is gone when prepare is called in `home`, or is made behind it."""
    unit = facts.unit(holder)
    if not facts.is_editable(unit):
        return False
    tree = facts.tree(holder)
    if (made := _whole(tree, holder)) is None:
        return False
    if _is_laid_down(facts, tree, made):
        return True
    if not isinstance(unit, Function):
        return any(_is_gone_after(facts, unit.tree, loop) for loop in _loops(facts, tree, made))
    if unit.yields:
        return False
    if unit.original is home:
        return any(_is_gone_after(facts, unit.node, loop) for loop in _loops(facts, tree, made))
    return home not in units_from(facts, unit.original) and _is_gone_through(facts, unit, tree, made)


def _whole(tree: Tree, holder: ast.AST) -> ast.expr | None:
    """A container that is written out, with what repeats it, or what a call hands on: `[self.G] * 2`, `zip(nets)`."""
    node = holder if isinstance(holder, _WRITTEN_OUT) else None
    call = tree.parents[holder] if isinstance(holder, (ast.Name, ast.Attribute)) else None
    if isinstance(call, ast.Call) and call.func is holder:
        node = call  # the pairs that it makes
    while node is not None and isinstance(above := tree.parents[node], ast.BinOp) and isinstance(above.op, ast.Mult):
        node = above
    return node


def _is_laid_down(facts: Facts, tree: Tree, node: ast.expr) -> bool:
    """`dict(zip(names, (a, b)))`: whether the dictionary that is made of a container is all that is left of it."""
    call = tree.parents[node]
    while isinstance(call, ast.Call) and node in call.args and not call.keywords:
        called = facts.called(call)
        if called != {"builtins.zip"}:
            return called == {"builtins.dict"}
        node, call = call, tree.parents[call]
    return False


def _is_gone_through(facts: Facts, unit: Function, tree: Tree, node: ast.expr) -> bool:
    """Whether loops go through a container, under a name of the function or none, and nothing else has it."""
    if any(True for _ in _loops(facts, tree, node)):
        return True
    above = tree.parents[node]
    target = above.targets[0] if isinstance(above, ast.Assign) and len(above.targets) == 1 else None
    if not isinstance(target, ast.Name) or target.id in unit.elsewhere:
        return False
    reads = [n for n in ast.walk(unit.node) if isinstance(n, ast.Name) and n.id == target.id]
    own = {id(n) for n in facts.own(unit)}
    reads = [n for n in reads if isinstance(n.ctx, ast.Load)] if all(id(n) in own for n in reads) else []
    return bool(reads) and all(any(True for _ in _loops(facts, tree, read)) for read in reads)


def _loops(facts: Facts, tree: Tree, node: ast.expr) -> Iterator[ast.For | ast.comprehension]:
    """The loop that goes through a container: `for net in nets`, `for i, net in enumerate(nets)`, `nets.values()`."""
    above = tree.parents[node]
    if isinstance(above, (ast.For, ast.comprehension)) and above.iter is node:
        yield above
    elif isinstance(above, ast.Attribute) and above.attr in _OF_DICTIONARIES:
        if isinstance(call := tree.parents[above], ast.Call) and call.func is above:
            yield from _loops(facts, tree, call)
    elif isinstance(above, ast.Call) and node in above.args and facts.called(above) & _THROUGH:
        yield from _loops(facts, tree, above)


def _is_gone_after(facts: Facts, around: ast.AST, loop: ast.For | ast.comprehension) -> bool:
    """Whether a loop makes nothing that prepare needs, and nothing around it asks for its names behind it."""
    whole = _all_of(facts.tree(loop), loop)
    if any(isinstance(n, ast.Call) and n in origins(facts.values(n), *_MADE) for n in ast.walk(whole)):
        return False
    if isinstance(loop, ast.comprehension):
        return True
    names = {n.id for n in ast.walk(loop.target) if isinstance(n, ast.Name)}
    within = {id(n) for n in ast.walk(whole)}
    reads = (n for n in ast.walk(around) if isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load))
    return all(id(n) in within or _is_given_anew(facts.tree(loop), n) for n in reads)


def _is_given_anew(tree: Tree, read: ast.Name) -> bool:
    """Whether a name has its value from another loop, or a comprehension, that the read stands in."""
    below: ast.AST = read
    for above in tree.up(read):
        if isinstance(above, FUNCTIONS):
            return False
        if isinstance(above, ast.For) and below in above.body and read.id in writes(above.target):
            return True
        if isinstance(above, COMPREHENSIONS) and any(read.id in writes(each.target) for each in above.generators):
            return below is not above.generators[0]
        below = above
    return False


def _all_of(tree: Tree, loop: ast.For | ast.comprehension) -> ast.AST:
    """A loop, or the comprehension that it is a part of."""
    whole = loop if isinstance(loop, ast.For) else tree.parents[loop]
    assert isinstance(whole, (ast.For, *COMPREHENSIONS))
    return whole
