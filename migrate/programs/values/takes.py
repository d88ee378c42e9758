"""Batches that are taken from a loader one by one, and which loader that is where objects of the project take them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, origins
from migrate.analysis.syntax import reads, walk
from migrate.analysis.units import Class, Function
from migrate.programs.values.sources import passed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Loop
    from migrate.analysis.units import Unit

_DEEPEST = 3  # iterators of iterators


def taken(facts: Facts, call: ast.Call) -> set[ast.AST]:
    """Where the loaders were made from which a call takes one batch: `next(batches)`, `batches.__next__()`."""
    source = asked(facts, call)
    return set() if source is None else facts.loaders(facts.values(source))


def begun(facts: Facts, call: ast.Call) -> set[ast.AST]:
    """Where the loaders were made over which a call begins a pass: `iter(loader)`."""
    begins = "builtins.iter" in facts.called(call) and bool(call.args)
    return facts.loaders(facts.values(call.args[0])) if begins else set()


def taken_for(facts: Facts, call: ast.Call, roots: Iterable[ast.AST]) -> set[ast.AST]:
    """The same for some code: of what objects take from an attribute, what those hold that the code uses.

    `next(self.loader)` in a class of which a training makes one object and an evaluation another.
    """
    found, source, unit = taken(facts, call), asked(facts, call), facts.unit(call)
    if len(found) < 2 or not isinstance(unit, Function) or unit.owner is None or not unit.positional:
        return found
    own = [found & _held(facts, made, source, unit, _DEEPEST) for made in _used(facts, unit.owner, roots)]
    return set().union(*own) if own and all(own) else found


def goes_on_with(facts: Facts, loop: Loop, loaders: Collection[ast.AST]) -> bool:
    """Whether a loop reads what the code around it took: `batch = next(batches)`, and then `for _ in range(steps):`."""
    read = (node for node in walk(loop) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return any(value.role in FROM_LOADER and value.origin in loaders for n in read for value in facts.values(n))


def nexts(facts: Facts, node: ast.AST) -> Iterator[Function]:
    """The `__next__` of the project's that `next(x)` enters."""
    if isinstance(node, ast.Call) and "builtins.next" in facts.called(node) and node.args:
        for value in facts.values(node.args[0]):
            for member in value.unit.lookup("__next__") if isinstance(value.unit, Class) else ():
                if isinstance(member.unit, Function):
                    yield member.unit


def asked(facts: Facts, call: ast.Call) -> ast.expr | None:
    """What a call asks for its next item."""
    if "builtins.next" in facts.called(call) and call.args:
        return call.args[0]
    is_asked = isinstance(call.func, ast.Attribute) and call.func.attr in ("next", "__next__")
    return call.func.value if is_asked and isinstance(call.func, ast.Attribute) else None


def _held(facts: Facts, made: ast.AST, source: ast.expr | None, unit: Unit, depth: int) -> set[ast.AST]:
    """The loaders of one object that a method goes over: those of `self.loader`, and what `__init__` was given."""
    if not isinstance(unit, Function) or not unit.positional or not depth:
        return set()
    match source:
        case ast.Attribute(ast.Name(name), attribute) if name == unit.positional[0].arg:
            values = facts.held(made, attribute)
            found = origins(values, Role.LOADER)
            for origin in origins(values, Role.ITERATOR):
                if isinstance(origin, ast.Call) and origin.args:  # `iter(loader)`, which is one for all objects
                    found |= _held(facts, made, origin.args[0], facts.unit(origin), depth - 1)
            return found
        case ast.Name(name) if isinstance(made, ast.Call) and (call := unit.calls.get(made)) is not None:
            argument = passed(call, unit, name)
            return set() if argument is None else facts.loaders(facts.values(argument))
    return set()


def _used(facts: Facts, cls: Class, roots: Iterable[ast.AST]) -> set[ast.AST]:
    """Where the objects of a class, or derived from it, were made that code outside of their methods has names for."""
    made = {value.origin for value in cls.instances if value.origin is not None}
    named = (node for root in roots for node in walk(root) if isinstance(node, (ast.Name, ast.Attribute)))
    outside = (node for node in named if not _is_inside(facts.unit(node), cls))
    return {value.origin for node in outside for value in facts.values(node) if value.origin in made}


def _is_inside(unit: Unit, cls: Class) -> bool:
    return isinstance(unit, Function) and unit.owner is not None and unit.owner.is_related(cls)


def hands_on(loop: Loop) -> bool:
    """Whether a loop of a generator only passes its batches through: what runs over the generator works with them."""
    if isinstance(loop, ast.While):
        return False
    batch = {node.id for node in walk(loop.target).of(ast.Name)}
    given = (node.value for node in walk(loop).of(ast.Yield) if node.value is not None)
    return any(reads(value) & batch for value in given)
