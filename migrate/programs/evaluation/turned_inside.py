"""Models that give their samples in another dimension than the first: `return self.out(x).permute(1, 0, 2)`.

What is gathered is joined along the first one. Followed is where the samples stand from line to line of `forward`, and
of the layers of the project that it enters; what nothing is known of leaves them where they are.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.known.tensors import CUTTING, FOLDING_WITHOUT_DIM, TURNING
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import argument_at, walk
from migrate.analysis.units import Class, Function
from migrate.analysis.widening import in_order
from migrate.programs.reach.forwards import is_own_object
from migrate.programs.training.sample_rows import name_of
from migrate.programs.values.place import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts

#: They stand somewhere else than first, and nobody knows where.
_LOST = -1
_DEEPEST = 3  # layers of the project inside of each other
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
#: Take dimensions together or apart.
_SHAPING = frozenset("view reshape flatten unflatten expand repeat repeat_interleave unfold view_as expand_as".split())
_FOLDING = FOLDING_WITHOUT_DIM | frozenset("amax amin logsumexp norm squeeze".split())
_SIZES = frozenset("size shape numel dim ndim device dtype item tolist".split())
_JOINING = frozenset("cat concat concatenate".split())
_COUNTING = frozenset("len range int float bool list print isinstance str max min".split())
_PADDED = frozenset({"pad_packed_sequence", "pad_sequence"})


def turns_samples(facts: Facts, statement: ast.stmt, read: Iterable[str]) -> str | None:
    """Why what a model gives may not be joined along its first dimension; `read`: the names that are read of it."""
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
        if Role.MODEL not in roles(facts.values(call.func)):
            continue
        for unit in _forwards(value.unit for value in in_order(facts.values(call.func))):
            for returned, place in _Places(facts, unit).run():
                if any(part != 0 for part in _taken(statement, place, set(read))):
                    return f"the model turns its samples (line {returned.lineno}): they are not first in what it gives"
    return None


def _taken(statement: ast.stmt, places: list[int | None], read: set[str]) -> list[int]:
    """Where the samples stand in what is read of a result: `out, _ = model(x)`."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    parts = list(places)
    if isinstance(target, ast.Tuple) and len(target.elts) == len(places):
        named = zip(target.elts, places, strict=True)
        parts = [place for to, place in named if not isinstance(to, ast.Name) or to.id in read]
    return [place for place in parts if place is not None]


def _forwards(units: Iterable[object]) -> Iterator[Function]:
    for unit in units:
        found = unit.lookup("forward") if isinstance(unit, Class) else ()
        yield from (member.unit for member in found if isinstance(member.unit, Function))


@dataclass(slots=True)
class _Places:
    """Which dimension of what a `forward` computes is the samples: by the names that hold it."""

    facts: Facts
    unit: Function
    given: int = 0
    depth: int = _DEEPEST
    held: dict[str, int | None] = field(default_factory=dict)
    returned: list[tuple[ast.Return, list[int | None]]] = field(default_factory=list)

    def run(self) -> list[tuple[ast.Return, list[int | None]]]:
        """What each `return` gives: of a tuple, each part."""
        itself = self.unit.itself.arg if self.unit.itself is not None else ""
        self.held = dict.fromkeys((name for name in self.unit.parameter_names if name != itself), self.given)
        if not isinstance(self.unit.node, ast.Lambda):
            self._block(self.unit.node.body)
        return self.returned

    def _block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Assign(targets, value):
                for target in targets:
                    self._give(target, value)
            case ast.AnnAssign(target, _, ast.expr() as value):
                self._give(target, value)
            case ast.AugAssign(ast.Name(name), _, value):
                self.held[name] = _together(self.held.get(name), self._of(value))
            case ast.Expr(ast.Call(ast.Attribute(ast.Name(name), "append"), [value])):
                self.held[name] = self._of(value)
            case ast.Return(ast.expr() as value):
                parts = value.elts if isinstance(value, ast.Tuple) else [value]
                self.returned.append((statement, [self._of(part) for part in parts]))
            case ast.If(_, body, orelse):
                self._ways(body, orelse)
            case ast.For(target, over, body):
                self._set(target, _entry(self._of(over)))
                self._ways(body, [])
            case ast.While(_, body) | ast.With(_, body) | ast.Try(body):
                self._block(body)

    def _ways(self, *ways: Sequence[ast.stmt]) -> None:
        before, ends = dict(self.held), []
        for way in ways:
            self.held = dict(before)
            self._block(way)
            if not (way and isinstance(way[-1], (ast.Return, ast.Raise))):
                ends.append(self.held)
        names = dict.fromkeys(name for end in ends for name in end)
        self.held = {name: _together(*(end.get(name) for end in ends)) for name in names}

    def _give(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for to, place in [(to, self._of(each)) for to, each in zip(target.elts, value.elts, strict=False)]:
                self._set(to, place)
        elif isinstance(target, ast.Tuple) and target.elts and self._is_recurrent(value):
            self._set(target.elts[0], self._of(value))
            for state in target.elts[1:]:  # (layers, samples, features)
                self._set(state, 1)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self._put(target, target.value.id, self._of(value))
        else:
            self._set(target, self._of(value))

    def _put(self, target: ast.Subscript, name: str, place: int | None) -> None:
        """`outputs[t] = rows`, `outputs[:, t] = rows`."""
        if place is not None and self.held.get(name) is None:
            first = target.slice.elts[0] if isinstance(target.slice, ast.Tuple) and target.slice.elts else target.slice
            self.held[name] = place if isinstance(first, ast.Slice) or place == _LOST else place + 1

    def _set(self, target: ast.AST, place: int | None) -> None:
        for node in walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.held[node.id] = place

    def _of(self, node: ast.expr) -> int | None:
        """Where the samples stand in an expression; None: it has none, or nothing is known."""
        match node:
            case ast.Name(name):
                return self.held.get(name)
            case ast.Attribute(value, attr):
                place = None if attr in _SIZES else self._of(value)
                return _turned(node, [], place) if attr == "T" else place
            case ast.Subscript(value, index):
                return self._item(value, index)
            case ast.BinOp(left, _, right):
                return _together(self._of(left), self._of(right))
            case ast.IfExp(_, body, orelse):
                return _together(self._of(body), self._of(orelse))
            case ast.Tuple(elts) | ast.List(elts):
                return _together(*map(self._of, elts))
            case ast.ListComp(elt, [generator]):
                self._set(generator.target, _entry(self._of(generator.iter)))
                return self._of(elt)
            case ast.Call():
                return self._called(node)
        return None

    def _item(self, value: ast.expr, index: ast.expr) -> int | None:
        place = self._of(value)
        if not place or place == _LOST:
            return place
        if isinstance(value, ast.Call) and self._attribute(value):  # the parts of what a layer gives
            return place if number(index) == 0 else None
        taken = dropped = 0
        for part in index.elts if isinstance(index, ast.Tuple) else [index]:
            if isinstance(part, ast.Constant) and part.value is None:
                dropped -= 1
            elif taken == place:
                return place - dropped if isinstance(part, ast.Slice) else _LOST
            else:
                dropped += not isinstance(part, ast.Slice)
                taken += 1
        return place - dropped

    def _called(self, call: ast.Call) -> int | None:
        name = name_of(call)
        if name in _SIZES or (isinstance(call.func, ast.Name) and name in _COUNTING):
            return None
        if name in _PADDED:
            first = argument_at(call, 1, "batch_first")
            return int(not (isinstance(first, ast.Constant) and first.value is True))
        of = self._receiver(call)
        given = call.args if of is not None else call.args[1:]
        place = self._of(of) if of is not None else _first(map(self._of, call.args))
        if place is None or self._attribute(call):
            place = _first(map(self._of, call.args)) if place is None else place
            return self._layer(call, place)
        return _made(name, call, given, place)

    def _receiver(self, call: ast.Call) -> ast.expr | None:
        """The tensor whose method a call is."""
        of = call.func.value if isinstance(call.func, ast.Attribute) else None
        return of if of is not None and self._of(of) is not None else None

    def _layer(self, call: ast.Call, place: int | None) -> int | None:
        """What a layer of the model gives: one of the project may turn it."""
        attribute = self._attribute(call)
        inner = list(_forwards(self._made(attribute))) if attribute and self.depth and place is not None else []
        found = [
            each
            for unit in inner
            for _, (each, *_) in _Places(self.facts, unit, place or 0, self.depth - 1).run()
            if each is not None
        ]
        return _together(*found) if found else place

    def _attribute(self, call: ast.Call) -> str | None:
        """The layer that a call runs: `self.out(x)`."""
        func = call.func
        is_own = isinstance(func, ast.Attribute) and is_own_object(self.unit, func.value)
        return func.attr if is_own and isinstance(func, ast.Attribute) else None

    def _made(self, attribute: str | None) -> Iterator[object]:
        yield from (value.unit for made in self._makers(attribute) for value in self.facts.values(made))

    def _makers(self, attribute: str | None) -> list[ast.expr]:
        """What `__init__` gives an attribute."""
        owner = self.unit.owner
        units = [member.unit for member in owner.lookup("__init__")] if isinstance(owner, Class) else []
        nodes = (node for unit in units if isinstance(unit, Function) for node in self.facts.own(unit))
        given = (pair for node in nodes if isinstance(node, ast.Assign) for pair in _pairs(node))
        return [value for to, value in given if isinstance(to, ast.Attribute) and to.attr == attribute]

    def _is_recurrent(self, value: ast.expr) -> bool:
        attribute = self._attribute(value) if isinstance(value, ast.Call) else None
        made = self._makers(attribute) if attribute else []
        return bool(made) and all(name_of(each) in _RECURRENT for each in made)


def _made(name: str, call: ast.Call, given: list[ast.expr], place: int) -> int | None:
    """Where the samples stand in what a function or method of a tensor gives that has them at a place."""
    if name in TURNING:
        return _turned(call, given, place)
    if name in _SHAPING or (name in CUTTING and place):
        return _LOST if place else 0
    if name in _JOINING or place == _LOST:
        return place
    if name == "stack":
        dim = _dimension(call, given)
        return place + 1 if dim is None or 0 <= dim <= place else place if dim > place else _LOST
    if name == "unsqueeze":
        dim = _dimension(call, given)
        return place + 1 if dim is not None and 0 <= dim <= place else place
    return _folded(call, given, place) if name in _FOLDING and place else place


def _folded(call: ast.Call, given: list[ast.expr], place: int) -> int:
    dim, keeps = _dimension(call, given), any(keyword.arg == "keepdim" for keyword in call.keywords)
    if dim is None or dim == place:
        return _LOST
    return place - 1 if 0 <= dim < place and not keeps else place


def _dimension(call: ast.Call, given: list[ast.expr]) -> int | None:
    named = next((each.value for each in call.keywords if each.arg in ("dim", "axis")), None)
    node = named if named is not None else given[0] if given else None
    dim = number(node) if node is not None else None
    return dim if isinstance(dim, int) else None


def _turned(node: ast.expr, given: list[ast.expr], place: int | None) -> int | None:
    """Where a dimension stands that is turned: `x.t()`, `x.permute(1, 0, 2)`, `x.transpose(0, 1)`."""
    if place is None or place == _LOST:
        return place
    dims = [number(each) for one in given for each in (one.elts if isinstance(one, (ast.Tuple, ast.List)) else [one])]
    name = name_of(node)
    if name == "permute":
        return dims.index(place) if place in dims else _LOST
    if not dims:  # a matrix, `x.t()`, `x.T`; or the last two: `x.mT`
        return 1 - place if name in ("t", "") and place < _OF_A_MATRIX else _LOST
    if None in dims or len(dims) != _OF_A_MATRIX:
        return _LOST
    if place not in dims:  # one from the end is taken for another than the first
        return place if place == 0 or min(map(str, dims)) >= "0" else _LOST
    to = dims[1 - dims.index(place)]
    is_swap = not name.startswith("move") or to in (place - 1, place + 1)
    return to if isinstance(to, int) and to >= 0 and is_swap else _LOST


_OF_A_MATRIX = 2  # dimensions


def _pairs(statement: ast.Assign) -> list[tuple[ast.expr, ast.expr]]:
    """Each target with what it is given: `self.inner, self.out = Inner(), Linear(4, 4)`."""
    to, value = statement.targets[-1], statement.value
    if isinstance(to, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(to.elts, value.elts, strict=False))
    return [(target, value) for target in statement.targets]


def _together(*places: int | None) -> int | None:
    """Where the samples stand in something that is made of several, or in one of them."""
    known = {place for place in places if place is not None}
    return None if not known else known.pop() if len(known) == 1 else _LOST


def _entry(place: int | None) -> int | None:
    return place - 1 if place is not None and place > 0 else place


def _first(places: Iterable[int | None]) -> int | None:
    return next((place for place in places if place is not None), None)
