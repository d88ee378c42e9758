"""What code outside of a loop's function reads of what the loop has left in places that others have, too.

    def epoch(loader, log):                     log = {"loss": 0.0}
        for x, y in loader:                     epoch(loader, log)
            log["loss"] += loss.item()          print(log["loss"])

These are attributes of the object whose method the loop stands in, names around the function, and what callers hand
over and keep.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_stored
from migrate.analysis.units import Function
from migrate.programs.values.aliases import outside
from migrate.programs.values.below import below, having, object_of
from migrate.programs.values.kept import FILLING, place_of, root_of
from migrate.programs.values.readers import Loaded
from migrate.programs.values.sources import passed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Call, Unit
    from migrate.programs.loops import LoopFact

_DEEPEST = 3  # calls between the loop and what has made the container
_CHANGING = FILLING | {"clear"}


def read_elsewhere(facts: Facts, loop: LoopFact, name: str) -> Iterator[ast.expr]:
    """Where code outside of a loop's function reads one of its places once the loop is over."""
    inside = {loop.unit, *(each.unit for each in below(facts, loop.node))}
    return _read(facts, loop.unit, name, inside, _DEEPEST)


def read_of_object(facts: Facts, method: Function, place: str, inside: Collection[Unit]) -> Iterator[ast.expr]:
    """Where code that runs, but for some functions, reads an attribute of the object of a method."""
    return _read(facts, method, place, {*inside}, _DEEPEST)


def read_by_other_names(facts: Facts, loop: LoopFact, places: Collection[str]) -> Iterator[str]:
    """The names of other functions for containers of modules that a loop fills, where they read them."""
    inside = {loop.unit, *(each.unit for each in below(facts, loop.node))}
    others = (unit for unit in facts.units if unit not in inside and facts.was_run(unit))
    calls = facts.callers(loop.unit) if isinstance(loop.unit, Function) else ()
    for node, name in outside(facts, loop.node, places, others):
        here = [call.node for call in calls if facts.unit(call.node) is facts.unit(node)]
        is_later = not here or any(_is_later(facts, call, node) for call in here)
        if is_later and _is_load(facts, node, name):
            yield name


def _read(facts: Facts, unit: Unit, name: str, inside: set[Unit], depth: int) -> Iterator[ast.expr]:
    if not isinstance(unit, Function):
        return
    root = root_of(name)
    if root == object_of(unit):
        yield from (node for node in _reads(facts, name, inside) if _is_of(facts, unit, node, name))
    elif root in unit.parameter_names:
        for call in facts.callers(unit) if depth > 0 and not _is_set(facts, unit, root) else ():
            yield from _read_by_caller(facts, call, unit, name, inside, depth - 1)
    elif (owner := having(unit, root)) is not unit:
        for node in _reads(facts, name, inside):
            if ast.unparse(node) == name.partition("[")[0] and having(facts.unit(node), root) is owner:
                yield node


def _read_by_caller(
    facts: Facts, call: Call, unit: Function, name: str, inside: set[Unit], depth: int
) -> Iterator[ast.expr]:
    """Where who hands a container over reads it later, or who has handed it over before."""
    root, above = root_of(name), facts.unit(call.node)
    for place in place_of(given) if (given := passed(call, unit, root)) is not None else ():
        kept = f"{place}{name[len(root) :]}"
        for node in facts.own(above):
            if isinstance(node, ast.expr) and _is_meant(facts, node, kept) and _is_later(facts, call.node, node):
                yield node
        yield from _read(facts, above, kept, {*inside, above}, depth)


def _is_later(facts: Facts, call: ast.Call, node: ast.expr) -> bool:
    """Whether a node stands behind a call, or in a loop around both; not in the call itself."""
    tree = facts.tree(call)
    above = set(tree.up(node))
    return call not in above and (node.lineno > call.lineno or not above.isdisjoint(tree.loops(call)))


def _reads(facts: Facts, name: str, inside: set[Unit]) -> Iterator[ast.expr]:
    """Where functions that run, but for those inside, read something that is called as a place is."""
    last, loaded = name.partition("[")[0].rpartition(".")[2], facts.once(Loaded)
    for node in (*loaded.attributes.get(last, ()), *loaded.names.get(last, ())):
        unit = facts.unit(node)
        if unit not in inside and facts.was_run(unit) and _is_load(facts, node, name):
            yield node


def _is_meant(facts: Facts, node: ast.expr, name: str) -> bool:
    """Whether a node reads a place, by what is written."""
    is_kind = isinstance(node, (ast.Name, ast.Attribute))
    return is_kind and ast.unparse(node) == name.partition("[")[0] and _is_load(facts, node, name)


def _is_load(facts: Facts, node: ast.expr, name: str) -> bool:
    """Whether a name or attribute is read for what is in it: not to fill it, nor for another item."""
    parents = facts.tree(node).parents
    above = parents[node]
    if is_stored(node):
        return False
    if isinstance(above, ast.Subscript) and above.value is node:
        key, is_item = f"{name.partition('[')[0]}[{ast.unparse(above.slice)}]", isinstance(above.slice, ast.Constant)
        if is_item and "[" in name and key != name:
            return False
        return _is_load(facts, above, name)
    is_method = isinstance(above, ast.Attribute) and isinstance(parents[above], ast.Call)
    return not (is_method and isinstance(above, ast.Attribute) and above.attr in _CHANGING)


def _is_of(facts: Facts, method: Function, node: ast.expr, name: str) -> bool:
    """Whether an attribute is one of the object of a method, whatever that is called elsewhere."""
    root, _, path = name.partition("[")[0].partition(".")
    text = ast.unparse(node)
    if not path or not text.endswith(f".{path}"):
        return False
    of = node
    for _ in path.split("."):
        assert isinstance(of, ast.Attribute)
        of = of.value
    mine = next((n for n in facts.own(method) if isinstance(n, ast.Name) and n.id == root), None)
    known = {value.origin for value in facts.values(mine)} if mine is not None else set()
    return any(value.origin in known for value in facts.values(of))


def _is_set(facts: Facts, unit: Function, name: str) -> bool:
    """Whether a function gives its parameter another value."""
    return any(isinstance(node, ast.Name) and node.id == name and is_stored(node) for node in facts.own(unit))
