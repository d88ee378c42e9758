"""One process's own numbers that decide, and where they become the mean of all processes.

`if loss.item() < best: save`: which process's loss? What the last step left under a name is joined once, after the
loop; what is put into lists and objects that go on growing is joined as it is put there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.roles import PLACE, roles
from migrate.analysis.syntax import FUNCTIONS, arguments, rounds, targets_of
from migrate.analysis.units import Function
from migrate.programs.shares.feeding import fed_by
from migrate.programs.shares.ground import DEEPEST
from migrate.programs.values.accumulators import holds_own
from migrate.programs.values.kept import FILLING, filled, place_of
from migrate.programs.values.made_of import entries
from migrate.programs.values.scalars import Scalar, Scalars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.shares.ground import Ground


_TESTED = (ast.If, ast.While, ast.IfExp)
_ALONE = (ast.ExceptHandler, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Joint(Enum):
    """What the numbers of all processes become."""

    MEAN = "mean"
    SUM = "sum"
    LEAST = "min"
    MOST = "max"
    MEANS = "means"  # of a list, one by one, their means


@dataclass(frozen=True, slots=True)
class Average:
    """A number that all processes have in common from here on."""

    at: ast.expr | ast.stmt  # an expression that is joined where it stands, or what a name is joined after
    name: str  # empty: an expression
    joint: Joint
    is_tensor: bool
    shown_inside: bool = False  # it is also read while the loop runs


@dataclass(frozen=True, slots=True)
class Averages:
    """What is joined for one training loop."""

    edits: tuple[Average, ...] = ()
    names: frozenset[str] = frozenset()  # of the loop's function, that are nobody's own any more after the loop
    calls: frozenset[ast.Call] = frozenset()  # that are given nothing of one process any more
    places: frozenset[tuple[ast.AST, str]] = frozenset()  # in functions that the loop enters

    def __or__(self, other: Averages) -> Averages:
        return Averages(
            tuple(dict.fromkeys((*self.edits, *other.edits))),
            self.names | other.names,
            self.calls | other.calls,
            self.places | other.places,
        )


class Averaging:
    """What becomes of the numbers of one loop that decide."""

    def __init__(self, ground: Ground, loop: LoopFact) -> None:
        self._facts = ground.facts
        self._loop = loop
        self._scalars = Scalars(ground.facts, loop)

    def name(self, name: str) -> Averages | None:
        """How a name, attribute or item that the loop leaves is made one; None: it cannot be."""
        feeding = fed_by(self._facts, self._loop).get(name)
        if feeding is not None:
            return self._calls(feeding, name)
        put = list(_filling(self._loop.node, name))
        given = list(_given(self._loop.node, name))
        if _is_set_by_key(self._loop.node, name):
            return None
        if put and not given:
            return self._calls(put, name)
        return self._left(name, given) if given and not put else None

    def place(self, unit: Function, name: str) -> Averages | None:
        """The same, of an attribute or item that a function gets which the loop enters."""
        given = [(value, None) for value in self._given_own(unit.node, name)]
        filling = [call for call in _filling(unit.node, name) if self._is_own(call)]
        edits = [edit for value, _ in given if (edit := self._wrapped(value)) is not None]
        more = [self._calls([call], "") for call in filling]
        if len(edits) < len(given) or None in more or not (edits or more):
            return None
        found = Averages(tuple(edits), places=frozenset({(unit.node, name)}))
        for each in more:
            assert each is not None
            found |= each
        return found

    def call(self, call: ast.Call) -> Averages | None:
        """How what a function is given is made one."""
        return self._calls([call], "")

    def number(self, node: ast.expr, *, is_tensor: bool) -> Average | None:
        """How a number is made the mean of all where it stands; None: not all processes come to it."""
        return Average(node, "", Joint.MEAN, is_tensor) if self._is_met(node) else None

    def is_of_batch(self, node: ast.expr) -> bool:
        """Whether an expression holds something of the batches of one process."""
        return self._is_own_anywhere(node)

    def is_one(self, node: ast.expr) -> bool:
        """Whether a tensor has one element."""
        while isinstance(node, ast.Subscript):  # `loss.data[0]`
            node = node.value
        return self._scalars.kind(node) is Scalar.TENSOR

    # --- after the loop ---------------------------------------------------------------------------------------------

    def _left(self, name: str, given: list[tuple[ast.expr | None, ast.stmt]]) -> Averages | None:
        kinds = {self._kind(name, value) if value is not None else None for value, _ in given}
        if None in kinds or Scalar.WHOLE in kinds or len(kinds) > 1:
            return None
        joint = {_joint(self._facts, name, value, statement) for value, statement in given if value is not None}
        if len(joint) > 1 or self._loop.node.orelse:
            return None
        edit = Average(self._loop.node, name, joint.pop(), kinds == {Scalar.TENSOR})
        return Averages((edit,), names=frozenset({name}))

    def _kind(self, name: str, value: ast.expr) -> Scalar | None:
        if name.isidentifier():
            node = next(
                (n for n in rounds(self._loop.node) if isinstance(n, ast.Name) and n.id == name), ast.Name(name)
            )
            return self._scalars.kind(node)
        return self._scalars.grown(value, name)

    # --- where they are put -----------------------------------------------------------------------------------------

    def _calls(self, calls: list[ast.Call], name: str) -> Averages | None:
        edits: list[Average] = []
        for call in calls:
            if not self._is_met(call):
                return None
            for argument in arguments(call):
                for leaf in self._leaves(argument):
                    edit = self._wrapped(leaf)
                    if edit is None:
                        return None
                    edits.append(edit)
        names = frozenset({name} if name else ())
        return Averages(tuple(edits), names, frozenset(calls)) if edits else None

    def _leaves(self, node: ast.expr) -> Iterator[ast.expr]:
        """What of an argument is one process's own: of a row that is written out its entries."""
        return (entry for entry in entries(node) if self._is_own_anywhere(entry))

    def _wrapped(self, node: ast.expr) -> Average | None:
        kind = self._scalars.kind(node)
        if kind is None or not self._is_met(node):
            return None
        if kind is Scalar.WHOLE:  # how many samples there were
            return Average(node, "", Joint.SUM, is_tensor=False) if _is_size(node) else None
        return Average(node, "", Joint.MEAN, kind is Scalar.TENSOR)

    def _is_met(self, node: ast.AST, depth: int = DEEPEST) -> bool:
        """Whether all processes come to a place that the loop comes to, equally often."""
        tree = self._facts.tree(node)
        for above in tree.up(node):
            if above is self._loop.node:
                return True
            if isinstance(above, FUNCTIONS) and not isinstance(above, ast.Lambda):
                unit = self._facts.unit(node)
                callers = self._facts.callers(unit) if isinstance(unit, Function) else []
                return depth > 0 and all(self._is_met(caller.node, depth - 1) for caller in callers)
            if isinstance(above, _ALONE) or (isinstance(above, _TESTED) and self._is_lone(above.test)):
                return False
            if isinstance(above, ast.For) and self._is_own_anywhere(above.iter):
                return False
        return True

    def _is_lone(self, test: ast.expr) -> bool:
        """Whether a test goes by the batch, or by which process it is."""
        asked = (roles(self._facts.values(node)) & PLACE for node in ast.walk(test) if isinstance(node, ast.expr))
        return any(asked) or self._is_own_anywhere(test)

    def _is_own(self, call: ast.Call) -> bool:
        return any(map(self._is_own_anywhere, arguments(call)))

    def _is_own_anywhere(self, node: ast.expr) -> bool:
        return holds_own(self._facts, self._loop, node)

    def _given_own(self, root: ast.AST, name: str) -> Iterator[ast.expr]:
        for value, _ in _given(root, name):
            if value is not None and self._is_own_anywhere(value):
                yield value


def _is_size(node: ast.expr) -> bool:
    """`x.size(0)`, `x.shape[0]`, `len(x)`."""
    if isinstance(node, ast.Call):
        function = node.func
        return isinstance(function, ast.Name) or (isinstance(function, ast.Attribute) and function.attr == "size")
    inner = node.value if isinstance(node, ast.Subscript) else None
    inner = inner.func if isinstance(inner, ast.Call) else inner
    return isinstance(inner, ast.Attribute) and inner.attr in ("shape", "size")


def _given(root: ast.AST, name: str) -> Iterator[tuple[ast.expr | None, ast.stmt]]:
    """What a name, attribute or item is given in some code; None: a part of something, or something that is added."""
    for node in _nodes(root):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            for target in targets_of(node):
                if any(ast.unparse(inner) == name for inner in _stored(target)):
                    is_whole = target in _stored(target) and not isinstance(node, ast.AugAssign)
                    yield (node.value if is_whole else _part(target, node.value, name)), node


def _part(target: ast.expr, value: ast.expr | None, name: str) -> ast.expr | None:
    """The name itself where it is a part of a tuple, of which the kind is asked by its name."""
    is_part = isinstance(target, (ast.Tuple, ast.List)) and name.isidentifier()
    return next((inner for inner in _stored(target) if ast.unparse(inner) == name), None) if is_part else None


def _stored(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [inner for element in target.elts for inner in _stored(element)]
    return [target]


def _filling(root: ast.AST, name: str) -> Iterator[ast.Call]:
    """`losses.append(x)`."""
    for node in _nodes(root):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLING:
            if name in place_of(filled(node)):
                yield node


def _is_set_by_key(root: ast.AST, name: str) -> bool:
    """`log[key] = x`: an item whose key is not written out."""
    stored = (n for n in _nodes(root) if isinstance(n, ast.Subscript) and isinstance(n.ctx, ast.Store))
    return any(not isinstance(node.slice, ast.Constant) and name in place_of(node) for node in stored)


def _nodes(root: ast.AST) -> Iterable[ast.AST]:
    """The nodes of some code without the functions that it defines."""
    inside = {
        id(n) for node in ast.walk(root) if isinstance(node, FUNCTIONS) and node is not root for n in ast.walk(node)
    }
    return (node for node in ast.walk(root) if id(node) not in inside)


def _joint(facts: Facts, name: str, value: ast.expr, statement: ast.stmt) -> Joint:
    """`low = min(low, x)`, `if x < low: low = x`: the least of all processes; else the mean."""
    if isinstance(value, ast.Call) and any(ast.unparse(argument) == name for argument in value.args):
        for word, joint in (("min", Joint.LEAST), ("max", Joint.MOST)):
            if facts.called(value) & {f"builtins.{word}", f"numpy.{word}imum"}:
                return joint
    above = facts.tree(statement).parents.get(statement)
    if isinstance(above, ast.If) and isinstance(above.test, ast.Compare) and len(above.test.ops) == 1:
        sides = ast.unparse(above.test.left), ast.unparse(above.test.comparators[0])
        if name in sides and statement in above.body:
            is_less = isinstance(above.test.ops[0], (ast.Lt, ast.LtE))
            return Joint.LEAST if is_less == (sides[1] == name) else Joint.MOST
    return Joint.MEAN
