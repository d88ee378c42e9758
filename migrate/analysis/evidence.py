"""How a value came to where it is: the chain from an expression back to the place where the value was made.

The chain is found afterwards, by a breadth-first walk over what the analysis has recorded: from a name to the places
that bind it, from a parameter to the calls that fill it, from a call to the returns of the function, from an attribute
to the places that set it. So the analysis itself keeps no history, and of several ways the shortest is told.
"""

from __future__ import annotations

import ast
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from migrate.analysis.binders import Binders, arguments, default, given, holds, returned, yielded
from migrate.analysis.members import SUPER
from migrate.analysis.roles import BELONGING, FROM_LOADER, Role
from migrate.analysis.units import Class, Function, Module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value

MOST = 20_000  # places that one walk looks at: far more than any chain of a real program needs

#: What is computed from what, of one origin: a smaller number comes first.
_RANK = {
    Role.LOADER: 0,
    Role.MODEL: 0,
    Role.OPTIMIZER: 0,
    Role.SCHEDULER: 0,
    Role.BATCH: 1,
    Role.PARAMETERS: 1,
    Role.SAMPLES: 2,
    Role.STATISTIC: 3,
    Role.STATE: 2,
}
#: Their origin is where the object was made that they belong to, not where they were made themselves.
_BELONGING = BELONGING | {Role.METHOD}
#: What can be iterated over or unpacked. What the attributes of an object hold is found by the places that set them.
_HOLDING = frozenset({Role.CONTAINER, Role.ITERATOR, Role.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Link:
    """One link of a chain: a place, and what happens to the value there."""

    node: ast.AST
    what: str


@dataclass(frozen=True, slots=True)
class _Spot:
    """A value at a node; `inside`: among what the object made at the node holds."""

    node: ast.AST
    value: Value
    inside: bool = False


_Step = tuple[_Spot, Link | None]  # where the value came from, and what is worth telling about that


class Evidence:
    """The chains of a program."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._binders = Binders(facts)

    def chain(self, node: ast.AST, value: Value) -> tuple[Link, ...]:
        """The links from a node that has the value back to where it was made, newest first."""
        start = _Spot(node, value)
        came: dict[_Spot, tuple[_Spot, Link | None] | None] = {start: None}
        waiting = deque([start])
        while waiting and len(came) < MOST:
            spot = waiting.popleft()
            if (end := self._end(spot)) is not None:
                return (*_told(came, spot), end)
            for before, link in self._steps(spot):
                if before not in came:
                    came[before] = (spot, link)
                    waiting.append(before)
        far = next(reversed(came))
        if value.origin is None or isinstance(value.origin, ast.Module):
            return tuple(_told(came, far))
        return (
            *_told(came, far),
            Link(value.origin, f"{self._made(value.origin)} (the way from there is not recorded)"),
        )

    # --- ends -------------------------------------------------------------------------------------------------------

    def _end(self, spot: _Spot) -> Link | None:
        """The last link, if the value was made here."""
        node, value = spot.node, spot.value
        if spot.inside:
            return None
        made = value.origin and self._facts.source(value.origin)
        if node is made and (value.role not in _BELONGING or isinstance(node, ast.stmt)):
            return Link(node, self._made(node))
        if isinstance(node, ast.alias):
            module, name = self._binders.imported(node)
            statement = self._facts.tree(node).parents[node]
            if module is None:
                source = "a file that was not read" if getattr(statement, "level", 0) else "a library"
                return Link(statement, f"imported from {source}")
            if not name or value.role is Role.MODULE:
                return Link(statement, f"imported: {module.path}")
        if value.origin is None:
            if isinstance(node, ast.Constant):
                return Link(node, f"written here: {ast.unparse(node)}")
            if isinstance(node, ast.Call) and value.role is Role.AVAILABLE:
                return Link(node, self._made(node))
            if isinstance(node, ast.Name) and value.name == f"builtins.{node.id}":
                return Link(node, "a builtin of Python")
        return None

    def _made(self, node: ast.AST) -> str:
        if isinstance(node, ast.Call):
            return f"made here by {short(node.func)}()"
        if isinstance(node, ast.ClassDef):
            return f"class {node.name} is defined here; no call that makes one was seen"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return f"{node.name}() is defined here"
        if isinstance(node, ast.arg) and node.annotation is not None:
            return f"by its annotation, {short(node.annotation)}; no call that fills it was seen"
        return f"{_WRITTEN.get(type(node), 'an object')}, made here"

    # --- steps ------------------------------------------------------------------------------------------------------

    def _steps(self, spot: _Spot) -> Iterator[_Step]:
        if spot.inside:
            yield from self._held(spot.node, spot.value)
        elif isinstance(getattr(spot.node, "ctx", None), ast.Store):
            yield from self._stored(spot.node, spot.value)
        else:
            kind = self._KINDS.get(type(spot.node))
            if kind is not None:
                yield from kind(self, spot.node, spot.value)
            elif isinstance(spot.node, ast.expr):
                yield from self._parts(spot.node, spot.value)

    def _name(self, node: ast.Name, value: Value) -> Iterator[_Step]:
        for binders in self._binders.visible(node, node.id):
            fitting = [binder for binder in binders if holds(binder, value, self._facts, self._binders)]
            yield from ((_Spot(binder, value), None) for binder in fitting)
            if fitting:
                return
        yield from self._behind_star(node, value)

    def _behind_star(self, node: ast.Name, value: Value) -> Iterator[_Step]:
        for aliases in self._binders.visible(node, "*"):
            for alias in aliases:
                yield from self._taken(alias, node.id, value)  # type: ignore[arg-type]

    def _stored(self, node: ast.AST, value: Value) -> Iterator[_Step]:
        """From a target to what it is given."""
        tree = self._facts.tree(node)
        target, above = node, tree.parents[node]
        while isinstance(above, (ast.Tuple, ast.List, ast.Starred)):
            target, above = above, tree.parents[above]
        inner = target is not node
        name = short(node)
        if isinstance(above, (ast.For, ast.AsyncFor, ast.comprehension)):
            link = Link(above.iter, f"`{name}` is what iterating over `{short(above.iter)}` gives")
            yield from self._from(above.iter, value, link, inner=True)
        elif isinstance(above, ast.withitem):
            yield from self._from(above.context_expr, value, Link(node, f"bound to `{name}` by `with`"))
        elif (source := getattr(above, "value", None)) is not None and source is not target:
            how = "unpacked into" if inner else "assigned to" if isinstance(node, ast.Name) else "stored in"
            origin = f" from `{short(source)}`" if inner else ""
            yield from self._from(source, value, Link(node, f"{how} `{name}`{origin}"), inner=inner)
            if isinstance(above, ast.AugAssign):  # what it was before
                before = self._KINDS.get(type(node))
                yield from before(self, node, value) if before is not None else ()

    def _from(self, source: ast.expr, value: Value, link: Link | None, *, inner: bool = False) -> Iterator[_Step]:
        """From an expression that has the value, something that it is computed from, or (`inner`) holds it."""
        values = self._facts.values(source)
        if value in values:
            yield _Spot(source, value), link
        earlier = list(_earlier(value, values)) or (list(_related(value, values)) if value not in values else [])
        for other in earlier:
            yield _Spot(source, other), link
        if inner:
            for holder in values:
                if holder.role in _HOLDING and holder.origin is not None:
                    yield _Spot(holder.origin, value, inside=True), link

    def _parameter(self, node: ast.arg, value: Value) -> Iterator[_Step]:
        unit = self._binders.function(node)
        if unit is None:
            return
        name = called(unit)
        for call in self._binders.callers(unit):
            by = f" by {call.handed.by}()" if call.handed is not None else ""
            link = Link(call.node, f"passed to {name} as `{node.arg}`{by}")
            if by and value.origin is call.node:  # the library has it of its own
                yield _Spot(call.node, value), link
            for argument in given(call, unit, node):
                inner = node in (unit.node.args.vararg, unit.node.args.kwarg) or value not in self._facts.values(
                    argument
                )
                yield from self._from(argument, value, link, inner=inner)
        if (otherwise := default(unit, node)) is not None:
            yield from self._from(otherwise, value, Link(otherwise, f"default of `{node.arg}` of {name}"))
        if unit.owner is not None and unit.positional[:1] == [node] and value.origin is not None:
            yield _Spot(value.origin, value), Link(unit.node, f"the object that {name} runs on")

    def _import(self, node: ast.alias, value: Value) -> Iterator[_Step]:
        yield from self._taken(node, node.name, value)

    def _taken(self, alias: ast.alias, name: str, value: Value) -> Iterator[_Step]:
        module, _ = self._binders.imported(alias)
        if module is None:
            return
        link = Link(self._facts.tree(alias).parents[alias], f"`{name}` imported from {module.path}")
        for binder in self._binders.exported(module, name):
            if isinstance(binder, ast.alias) and binder.name == "*":
                if binder is not alias:
                    yield from self._taken(binder, name, value)
            elif holds(binder, value, self._facts, self._binders):
                yield _Spot(binder, value), link

    def _attribute(self, node: ast.Attribute, value: Value) -> Iterator[_Step]:
        owners = self._facts.values(node.value)
        for target in (*self._binders.stores(node.attr, owners), *self._binders.members(node.attr, owners)):
            if holds(target, value, self._facts, self._binders):
                yield _Spot(target, value), None
        for owner in owners:
            if isinstance(owner.unit, Module):
                for binder in self._binders.exported(owner.unit, node.attr):
                    if holds(binder, value, self._facts, self._binders):
                        yield _Spot(binder, value), None
            elif isinstance(owner.unit, Class):
                for member in self._binders.members(node.attr, frozenset({owner})):
                    yield from self._given_back(self._facts.function(member), value)
        if value.receiver is not None and value.receiver in owners:
            yield _Spot(node.value, value.receiver), Link(node, f"`.{node.attr}` of `{short(node.value)}`")
        link = None if value.role is Role.KNOWN else Link(node, f"`{short(node)}`")
        yield from self._from(node.value, value, link)
        made = {owner.origin for owner in owners if not isinstance(owner.unit, Class)}
        for call in (origin for origin in made if isinstance(origin, ast.Call)):
            for argument in arguments(call):  # loader.dataset
                yield from self._from(argument, value, Link(call, f"given to {short(call.func)}()"))

    def _given_back(self, unit: Function | None, value: Value) -> Iterator[_Step]:
        if unit is None or value not in unit.returns:
            return
        for expression, statement in returned(unit):
            yield from self._from(expression, value, Link(statement, f"returned by {called(unit)}"))

    def _call(self, node: ast.Call, value: Value) -> Iterator[_Step]:
        for unit in self._facts.targets(node):
            yield from self._given_back(unit, value)
        if value.receiver is not None and value.name == SUPER:
            yield from self._seen_as_base(node, value.receiver)
        sources = arguments(node)
        if isinstance(node.func, ast.Attribute):
            sources.append(node.func.value)
        name = f"{short(node.func)}()"
        for source in sources:
            same = value in self._facts.values(source)
            is_receiver = isinstance(node.func, ast.Attribute) and source is node.func.value
            handing = f".{node.func.attr}()" if is_receiver else name  # type: ignore[attr-defined]
            link = Link(node, f"handed on by {handing}" if same else f"given by {name}")
            yield from self._from(source, value, link, inner=not same)
        for callee in _earlier(value, self._facts.values(node.func)):
            yield _Spot(node.func, callee), Link(node, f"given by {name}")

    def _seen_as_base(self, node: ast.Call, receiver: Value) -> Iterator[_Step]:
        unit: object = self._facts.unit(node)
        while isinstance(unit, Function):
            if unit.owner is not None and unit.positional:
                yield _Spot(unit.positional[0], receiver), Link(node, "the object, seen as one of its base class")
            unit = unit.parent

    def _subscript(self, node: ast.Subscript, value: Value) -> Iterator[_Step]:
        yield from self._from(node.value, value, Link(node, f"taken out of `{short(node.value)}`"), inner=True)

    def _parts(self, node: ast.AST, value: Value) -> Iterator[_Step]:
        """Any other expression: one of its parts has the value, or something that it is computed from."""
        for child in ast.iter_child_nodes(node):
            part = child.value if isinstance(child, (ast.keyword, ast.FormattedValue)) else child
            if isinstance(part, ast.expr):
                same = value in self._facts.values(part)
                yield from self._from(part, value, None if same else Link(node, f"computed by `{short(node)}`"))
            elif isinstance(part, ast.comprehension):
                yield from self._from(part.iter, value, Link(node, "collected here"), inner=True)

    # --- what objects hold ------------------------------------------------------------------------------------------

    def _held(self, origin: ast.AST, value: Value) -> Iterator[_Step]:
        if isinstance(origin, ast.arg):
            yield from self._parameter(origin, value)
            return
        node = self._facts.tree(origin).parents.get(origin)
        call = node if isinstance(node, ast.Call) and node.func is origin else origin
        if isinstance(call, ast.Call) and (makers := [unit for unit in self._facts.targets(call) if unit.yields]):
            for unit in makers:
                yield from self._yielded(unit, value)
        elif isinstance(call, ast.Call):
            for source in (*arguments(call), *([call.func.value] if isinstance(call.func, ast.Attribute) else [])):
                yield from self._from(source, value, Link(call, f"given to {short(call.func)}()"), inner=True)
        elif isinstance(call, ast.expr):
            yield from self._elements(call, value)
        for sources, place in self._binders.puts(origin):
            if not sources:
                yield from self._stored(place, value)
            for source in sources:
                yield from self._from(source, value, Link(place, f"put in by `{short(place)}`"), inner=True)

    def _yielded(self, unit: Function, value: Value) -> Iterator[_Step]:
        for each in yielded(unit):
            if each.value is not None:
                inner = isinstance(each, ast.YieldFrom)
                yield from self._from(each.value, value, Link(each, f"yielded by {called(unit)}"), inner=inner)

    def _elements(self, node: ast.expr, value: Value) -> Iterator[_Step]:
        what = _WRITTEN.get(type(node), "an object")
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                part = child.value if isinstance(child, ast.Starred) else child
                yield from self._from(part, value, Link(child, f"put into {what}"), inner=True)

    _KINDS: ClassVar[dict[type[ast.AST], Callable[..., Iterable[_Step]]]] = {
        ast.Name: _name,
        ast.arg: _parameter,
        ast.alias: _import,
        ast.Attribute: _attribute,
        ast.Call: _call,
        ast.Subscript: _subscript,
    }


_WRITTEN = {
    ast.Dict: "a dictionary",
    ast.List: "a list",
    ast.Tuple: "a tuple",
    ast.Set: "a set",
    ast.ListComp: "a list",
    ast.SetComp: "a set",
    ast.DictComp: "a dictionary",
    ast.GeneratorExp: "a generator",
    ast.Lambda: "a lambda",
    ast.Starred: "a list",
    ast.arg: "a collection of arguments",
}


def _earlier(value: Value, values: Iterable[Value]) -> Iterator[Value]:
    """Of these values, those that this one is computed from, by what is known of their roles."""
    for other in values:
        if value.role is Role.KNOWN and other.role is Role.KNOWN:
            if other.name and value.name.startswith(other.name) and other != value:
                yield other
        elif other.origin is value.origin is not None and _RANK.get(other.role, 9) < _RANK.get(value.role, 0):
            yield other


def _related(value: Value, values: Iterable[Value]) -> Iterator[Value]:
    """Of these values, those of the same loader: a model gives rows for whatever goes in."""
    for other in values:
        if value.role in FROM_LOADER and other.role in FROM_LOADER and other.origin is value.origin:
            yield other


def _told(came: dict[_Spot, tuple[_Spot, Link | None] | None], spot: _Spot) -> list[Link]:
    """The links that led to a spot, in the order in which they were gone."""
    links: list[Link] = []
    step = came[spot]
    while step is not None:
        if step[1] is not None:
            links.append(step[1])
        step = came[step[0]]
    return links[::-1]


def called(unit: Function) -> str:
    """A function as it is called: a constructor by the name of its class."""
    owner = unit.owner.node.name if unit.owner is not None else ""
    if owner and unit.name == "__init__":
        return f"{owner}()"
    return f"{owner}.{unit.name}()" if owner else f"{unit.name}()"


def short(node: ast.AST, most: int = 50) -> str:
    """An expression as one short text."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
