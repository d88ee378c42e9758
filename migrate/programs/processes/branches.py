"""What a test asks of the place where a process runs, and which side is which.

`rank == 0`, `is_main_process()`, `args.distributed`, `torch.cuda.is_available()`: seen through names, attributes and
functions of the project. A side that is not certain is None. Where a test asks for several things, each part says what
it is certain of: if `a and b` holds, both do; if it does not hold, nothing is known.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known import distributed
from migrate.analysis.roles import Role, only, roles
from migrate.analysis.syntax import walk
from migrate.analysis.texts import text_of
from migrate.programs.marker import is_marked
from migrate.programs.values.conditions import MIRRORED
from migrate.programs.values.place import DEEPEST, Places, Quantity, number
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeGuard

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


class Side(str, Enum):
    """What holds on one side of a branch."""

    MAIN = "the main process"
    OTHERS = "the other processes"
    LOCAL_MAIN = "the first process of each machine"
    LOCAL_OTHERS = "the other processes of each machine"
    ONE = "there is one process"
    SEVERAL = "there are several processes"
    CUDA = "there is a GPU"
    HOST = "there is no GPU"
    FEW_DEVICES = "there is one GPU at most"
    MANY_DEVICES = "there are several GPUs"


OPPOSITE = {
    one: other
    for pair in (
        (Side.MAIN, Side.OTHERS),
        (Side.LOCAL_MAIN, Side.LOCAL_OTHERS),
        (Side.ONE, Side.SEVERAL),
        (Side.CUDA, Side.HOST),
        (Side.FEW_DEVICES, Side.MANY_DEVICES),
    )
    for one, other in (pair, pair[::-1])
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """What is certain if a test holds, and if it does not."""

    holds: Side | None
    fails: Side | None

    def turned(self) -> Meaning:
        """Of `not test`."""
        return Meaning(self.fails, self.holds)


@dataclass(frozen=True, slots=True)
class Branch:
    """An `if`, a conditional expression, a `while` or an `assert` whose test asks for the place."""

    node: ast.If | ast.IfExp | ast.While | ast.Assert
    unit: Unit
    meanings: tuple[Meaning, ...]

    def side(self, node: ast.AST) -> frozenset[Side]:
        """What is certain inside of the body or the else part that holds a node."""
        if _within(node, self.node.body if isinstance(self.node, (ast.If, ast.While, ast.IfExp)) else ()):
            return frozenset(m.holds for m in self.meanings if m.holds is not None)
        if _within(node, getattr(self.node, "orelse", ())):
            return frozenset(m.fails for m in self.meanings if m.fails is not None)
        return frozenset()


#: By quantity: what "it is as if alone" and "it is not" mean.
_SIDES = {
    Quantity.RANK: (Side.MAIN, Side.OTHERS),
    Quantity.LOCAL_RANK: (Side.LOCAL_MAIN, Side.LOCAL_OTHERS),
    Quantity.WORLD_SIZE: (Side.ONE, Side.SEVERAL),
    Quantity.DEVICES: (Side.FEW_DEVICES, Side.MANY_DEVICES),
}
_RANKS = frozenset({Quantity.RANK, Quantity.LOCAL_RANK})
_INITIALIZED = frozenset({"torch.distributed.is_initialized", "torch.distributed.is_torchelastic_launched"})
#: What an accelerator says of the process.
_ASKED = {
    "is_main_process": Side.MAIN,
    "is_local_main_process": Side.LOCAL_MAIN,
    "use_distributed": Side.SEVERAL,
}
_AVAILABLE = frozenset({"torch.cuda.is_available", "torch.accelerator.is_available"})


class Branches:
    """The branches of a program on the place where it runs."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._sources = facts.once(Sources)
        self._places = Places(facts, self._sources)
        self._known: dict[tuple[ast.expr, int], tuple[Meaning, ...]] = {}  # `w, h = fit(w, h)` leads to itself

    @cached_property
    def all(self) -> tuple[Branch, ...]:
        """Every such branch, in source order."""
        found = []
        for module in self._facts.modules:
            for node in self._facts.tree(module.tree).nodes:
                if isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
                    if meanings := self.meanings(node.test):
                        found.append(Branch(node, self._facts.unit(node), meanings))
        return tuple(found)

    def around(self, node: ast.AST) -> frozenset[Side]:
        """What is certain at a node, by the branches of its own function around it."""
        above = (self._by_node.get(each) for each in self._facts.tree(node).up(node))
        return frozenset().union(*(branch.side(node) for branch in above if branch is not None))

    @cached_property
    def _by_node(self) -> dict[ast.AST, Branch]:
        return {branch.node: branch for branch in self.all}

    def meanings(self, test: ast.expr, depth: int = DEEPEST) -> tuple[Meaning, ...]:
        """What a test asks for; empty: nothing of the place, or it is not known."""
        if depth == 0:
            return ()
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            return tuple(meaning.turned() for meaning in self.meanings(test.operand, depth))
        if isinstance(test, ast.BoolOp):
            return self._several(test, depth)
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            return _some(self._compared(test.left, test.ops[0], test.comparators[0]))
        if (test, depth) not in self._known:
            self._known[test, depth] = _some(self._plain(test)) or self._behind(test, depth)
        return self._known[test, depth]

    def _several(self, test: ast.BoolOp, depth: int) -> tuple[Meaning, ...]:
        parts = [self.meanings(value, depth) for value in test.values]
        found = [meaning for part in parts for meaning in part]
        if isinstance(test.op, ast.And):
            return tuple(replace(m, fails=None) for m in found if m.holds is not None)
        holds = {m.holds for m in found}
        # `not distributed or rank == 0`: where there is one process, it is the main one.
        for main in (Side.MAIN, Side.LOCAL_MAIN):
            if all(parts) and holds == {Side.ONE, main}:
                return (Meaning(main, OPPOSITE[main]),)
        return tuple(replace(m, holds=None) for m in found if m.fails is not None)

    def _behind(self, test: ast.expr, depth: int) -> tuple[Meaning, ...]:
        """What the expressions say that a flag or a function has its value from; all must say the same."""
        given = self._sources.given(test)
        if self._sources.option(test) is not None:  # the user may say something else
            return ()
        if not given.complete:
            return ()
        told = [self.meanings(e, depth - 1) for e in given.expressions if not _is_plain(e)]
        if not told or any(meanings != told[0] for meanings in told[1:]):
            return ()
        is_main = {meaning.holds for meaning in told[0]} <= {Side.MAIN, Side.LOCAL_MAIN}
        plain = {e.value for e in given.expressions if _is_plain(e) and not (is_main and self._is_alone(e, depth))}
        # Where the flag may also be a plain False, its failing says nothing; so for a plain True.
        kept = [Meaning(None if True in plain else m.holds, None if False in plain else m.fails) for m in told[0]]
        return tuple(meaning for meaning in kept if meaning.holds or meaning.fails)

    def _is_alone(self, node: ast.Constant, depth: int) -> bool:
        """Whether a plain True stands where there is one process: that one is the main process, indeed."""
        if node.value is not True:
            return False
        above = [up for up in self._facts.tree(node).up(node) if isinstance(up, ast.If)]
        branches = [Branch(up, self._facts.unit(up), self.meanings(up.test, depth - 1)) for up in above]
        return any(Side.ONE in branch.side(node) for branch in branches)

    # --- a single question ------------------------------------------------------------------------------------------

    def _plain(self, test: ast.expr) -> Meaning | None:
        """`rank`, `torch.cuda.is_available()`, `args.distributed` where that guards the joining of a group."""
        if isinstance(test, ast.Call):
            names = self._facts.called(test)
            if names and names <= _INITIALIZED:
                return _both(Side.SEVERAL)
            if names and names <= _AVAILABLE:
                return _both(Side.CUDA)
        if isinstance(test, ast.Attribute) and test.attr in _ASKED:
            if is_marked(test.value) or Role.ACCELERATOR in roles(self._facts.values(test.value)):
                return _both(_ASKED[test.attr])
        quantity = self._places.quantity(test)
        if quantity in _RANKS:
            return _both(_SIDES[quantity][1])
        if quantity is Quantity.DEVICES:
            return _both(Side.CUDA)
        if isinstance(test, (ast.Name, ast.Attribute)) and self._key(test) in self._joins.get(text_of(test), ()):
            return _both(Side.SEVERAL)
        if only(self._facts.values(test), Role.AVAILABLE) and isinstance(test, (ast.Name, ast.Attribute)):
            given = self._sources.given(test)
            return _both(Side.CUDA) if given.complete and all(map(self._is_available, given.expressions)) else None
        return None

    def _is_available(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and bool(self._facts.called(node) & _AVAILABLE)

    @cached_property
    def _joins(self) -> dict[str, set[object]]:
        """Flags under which, and only under which, the program joins a process group; each script has its own."""
        found: dict[str, set[object]] = {}
        for use in self._facts.calls_anywhere:
            if self._facts.called(use.node) & distributed.PROCESS_GROUPS:
                for above in self._facts.tree(use.node).up(use.node):
                    if isinstance(above, ast.If) and _within(use.node, above.body):
                        if isinstance(above.test, (ast.Name, ast.Attribute)):
                            found.setdefault(ast.unparse(above.test), set()).add(self._key(above.test))
        return found

    def _key(self, node: ast.Name | ast.Attribute) -> object:
        """Tells a flag from another one of the same spelling."""
        if isinstance(node, ast.Attribute):
            return frozenset(value.origin for value in self._facts.values(node.value))
        return id(self._facts.unit(node))

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Meaning | None:
        if isinstance(op, (ast.In, ast.NotIn)):
            return self._contained(left, right, positive=isinstance(op, ast.In))
        if number(left) is not None and number(right) is None:
            left, right = right, left
            op = MIRRORED.get(type(op), type(op))()
        value = number(right)
        if isinstance(value, str):
            return self._device(left, op, value)
        quantity = self._places.quantity(left)
        if quantity is None or not isinstance(value, int):
            return None
        return _asked(quantity, op, value)

    def _contained(self, left: ast.expr, right: ast.expr, *, positive: bool) -> Meaning | None:
        """`rank in (-1, 0)`, `"RANK" in os.environ`, `"cuda" in device`."""
        meaning: Meaning | None = None
        text = number(left)
        if isinstance(right, (ast.Tuple, ast.List, ast.Set)):
            quantity = self._places.quantity(left)
            if quantity in _RANKS and {number(element) for element in right.elts} in ({0}, {0, -1}):
                meaning = _both(_SIDES[quantity][0])
        elif isinstance(text, str) and "os.environ" in self._facts.names(right) and text in distributed.ENVIRONMENT:
            meaning = _both(Side.SEVERAL)
        elif text == "cuda" and self._is_device(right):
            meaning = _both(Side.CUDA)
        return meaning if positive or meaning is None else meaning.turned()

    def _device(self, left: ast.expr, op: ast.cmpop, text: str) -> Meaning | None:
        """`device.type == "cuda"`, `str(device) != "cpu"`."""
        kind = text.split(":", maxsplit=1)[0]
        if kind not in ("cuda", "cpu") or not isinstance(op, (ast.Eq, ast.NotEq)) or not self._is_device(left):
            return None
        # Of `== "cpu"` only the cpu side is certain of anything: the other one may be any accelerator.
        meaning = Meaning(Side.CUDA, None) if kind == "cuda" else Meaning(Side.HOST, None)
        return meaning if isinstance(op, ast.Eq) else meaning.turned()

    def _is_device(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute) and node.attr == "type":
            return only(self._facts.values(node.value), Role.DEVICE)
        if isinstance(node, ast.Call) and self._facts.called(node) == {"builtins.str"} and node.args:
            return only(self._facts.values(node.args[0]), Role.DEVICE)
        return Role.DEVICE in roles(self._facts.values(node)) or self._facts.is_device(self._facts.values(node))


def _asked(quantity: Quantity, op: ast.cmpop, value: int) -> Meaning | None:
    """What comparing a quantity with a number asks for."""
    alone, not_alone = _SIDES[quantity]
    least = 0 if quantity in _RANKS else 1  # what the quantity is for the main process, or for a single one
    if quantity in _RANKS and value == -1:  # the program's own sign for "not distributed"
        signs = {ast.Eq: Side.ONE, ast.NotEq: Side.SEVERAL, ast.Gt: Side.SEVERAL}
        return _both(signs[type(op)]) if type(op) in signs else None
    if quantity is Quantity.DEVICES and (type(op), value) in ((ast.Gt, 0), (ast.NotEq, 0), (ast.GtE, 1)):
        return _both(Side.CUDA)
    if isinstance(op, (ast.Eq, ast.NotEq)) and value == least and quantity is not Quantity.DEVICES:
        return _both(alone if isinstance(op, ast.Eq) else not_alone)
    if (type(op), value) in ((ast.Gt, least), (ast.GtE, least + 1)):
        return _both(not_alone)
    if (type(op), value) in ((ast.LtE, least), (ast.Lt, least + 1)):
        return _both(alone)
    if isinstance(op, ast.Eq) and quantity is Quantity.RANK and value > 0:
        return Meaning(Side.OTHERS, None)
    return None


def _both(side: Side) -> Meaning:
    return Meaning(side, OPPOSITE[side])


def _some(meaning: Meaning | None) -> tuple[Meaning, ...]:
    return (meaning,) if meaning is not None else ()


def _is_plain(node: ast.expr) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _within(node: ast.AST, part: ast.AST | Iterable[ast.AST]) -> bool:
    parts: Iterator[ast.AST] = iter([part] if isinstance(part, ast.AST) else part)
    return any(inner is node for one in parts for inner in walk(one))
