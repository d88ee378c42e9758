"""Calls that draw random numbers, and what comes to them while a program evaluates or gets a sample.

A share of a batch draws others than the whole of it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import data, same
from migrate.analysis.syntax import walk
from migrate.analysis.units import Function, Module
from migrate.programs.chance import initial
from migrate.programs.chance.environments import is_game
from migrate.programs.reach.callees import reached
from migrate.programs.values.takes import begun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Class


def draws_in_evaluation(facts: Facts, unit: Function, seen: set[Function]) -> bool:
    """Whether a function, or one of the project that it calls, draws outside of `if self.training:`."""
    seen.add(unit)
    skipped: set[int] = set()
    for node in walk(unit.node):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Attribute) and node.test.attr == "training":
            skipped |= {id(inner) for statement in node.body for inner in walk(statement)}
    for node in walk(unit.node):
        if not isinstance(node, ast.Call) or id(node) in skipped:
            continue
        if is_draw(facts, node) or initial.is_draw(facts, node):
            return True
        for target in facts.targets(node):
            if target not in seen and draws_in_evaluation(facts, target, seen):
                return True
    return False


def draws_samples(facts: Facts, cls: Class) -> str | None:
    """How a project data set draws random numbers, as far as its methods go that somebody comes to; None: it does not.

    Getting a sample may draw; so may another method, by which each process can have other samples under a number.
    """
    if draws_sample(facts, cls):
        return f"{cls.node.name}.__getitem__ draws random numbers for each sample"
    members = (value.unit for name in cls.names if not name.startswith("__") for value in cls.lookup(name))
    called = (unit for unit in members if isinstance(unit, Function) and facts.callers(unit))
    drawing = next((unit for unit in called if _draws(facts, unit, set())), None)
    return f"{cls.node.name}.{drawing.name}() draws what its samples are" if drawing is not None else None


def draws_sample(facts: Facts, cls: Class) -> bool:
    """Whether a data set of the project draws random numbers when it gets a sample."""
    return any(_draws(facts, unit, set()) for unit in of_samples(cls))


def drawn_for_samples(facts: Facts, cls: Class) -> set[str]:
    """The libraries from whose streams a data set of the project draws when it gets a sample."""
    nodes = (node for unit in reached(facts, of_samples(cls)) for node in facts.own(unit))
    calls = [node for node in nodes if isinstance(node, ast.Call) and is_draw(facts, node)]
    return {name.partition(".")[0] for call in calls for name in facts.called(call)}


def of_samples(cls: Class) -> set[Function]:
    """The methods that get a sample, those that these name, and those that are kept: `self.load = self.load_noisy`."""
    found: set[Function] = set()
    names = ["__getitem__", "__getitems__"]
    for each in cls.mro():
        called = {id(node.func) for node in walk(each.node) if isinstance(node, ast.Call)}
        names += [n.attr for n in walk(each.node) if isinstance(n, ast.Attribute) and id(n) not in called]
    while names:
        members = {value.unit for value in cls.lookup(names.pop())}
        new = {unit for unit in members if isinstance(unit, Function)} - found
        found |= new
        names += [node.attr for unit in new for node in walk(unit.node) if isinstance(node, ast.Attribute)]
    return found


def _draws(facts: Facts, unit: Function, seen: set[Function]) -> bool:
    """Whether a function, or one of the project that it calls, draws random numbers."""
    seen.add(unit)
    calls = walk(unit.node).of(ast.Call)
    entered = (target for call in calls for target in _entered(facts, unit, call))
    return any(is_draw(facts, call) for call in calls) or any(
        _draws(facts, target, seen) for target in entered if target not in seen
    )


def _entered(facts: Facts, unit: Function, call: ast.Call) -> Iterator[Function]:
    """The functions that a call enters; in one that was not run, those that its module has a name for."""
    yield from facts.targets(call)
    match call.func:
        case ast.Name(id=name):
            found = unit.module.names.get(name, frozenset())
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            modules = (value.unit for value in unit.module.names.get(name, ()))
            found = frozenset(v for m in modules if isinstance(m, Module) for v in m.names.get(attribute, ()))
        case _:
            return
    yield from (value.unit for value in found if isinstance(value.unit, Function))


def is_draw(facts: Facts, call: ast.Call) -> bool:
    """Whether a call of a library draws random numbers."""
    return any(name.startswith(data.RANDOM_PREFIXES) and name not in data.RANDOM_SEEDS for name in facts.called(call))


def draws(facts: Facts, node: ast.AST) -> bool:
    """Whether code draws random numbers itself: a library's call, or a pass over a loader that begins."""
    return begins_pass(facts, node) or (isinstance(node, ast.Call) and is_draw(facts, node))


def begins_pass(facts: Facts, node: ast.AST) -> bool:
    """Whether a pass over a loader begins, for which PyTorch draws a seed: `iter(loader)`, `for x, y in loader:`."""
    if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        return bool(facts.loaders(facts.values(node.iter)))
    return isinstance(node, ast.Call) and bool(begun(facts, node))


class Drawing(dict[Function, bool]):
    """Whether functions, or others of the project that they call, draw random numbers: each is looked at once."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, unit: Function) -> bool:
        nodes = (node for each in reached(self._facts, [unit]) for node in self._facts.own(each))
        self[unit] = any(draws(self._facts, node) for node in nodes)
        return self[unit]


def asks_chance(facts: Facts, call: ast.Call) -> bool:
    """Whether something of which nothing is known is asked for what chance decides: `distribution.sample()`, a game."""
    is_draw = isinstance(call.func, ast.Attribute) and call.func.attr in same.DRAWING_METHODS
    return is_draw or is_game(facts, call)
