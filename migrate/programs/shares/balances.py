"""Numbers that a step leaves for the next one, and that weigh its loss: a balance, a moving average.

`k = k + rate * (gamma * real - fake).item()` … `loss = real - k * fake`: each process would keep a balance of its own
batches. What it takes out of them becomes the mean of all processes, and so the balance is the same on all.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS, TRIES, reads, rounds, targets_of, walk, writes
from migrate.analysis.texts import text_of
from migrate.analysis.units import Function
from migrate.programs.values.afresh import is_afresh
from migrate.programs.values.kept import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree
    from migrate.programs.loops import LoopFact
    from migrate.programs.shares.averages import Average, Averaging

_DEEPEST = 4  # names between a number of the batch and the balance
_KEEPS = frozenset("detach cpu clone float double".split())
_BRANCHES = (ast.If, ast.While, ast.IfExp, ast.For, *TRIES)
_Given = ast.Assign | ast.AnnAssign | ast.AugAssign


@dataclass(frozen=True, slots=True)
class Balance:
    """A place that a loss goes by, and what is joined so that it is the same on all processes."""

    name: str
    at: ast.stmt  # where it is given its next value
    edits: tuple[Average, ...] | None  # None: not all processes come to it, or it is none of numbers
    of_batch: bool = False  # whether it is set to something of a whole batch


def balances(
    facts: Facts, loop: LoopFact, averaging: Averaging, *, draws: bool = False, steps: bool = True
) -> Iterator[Balance]:
    """The balances of one training loop. `draws`: each process draws its batches itself, and any tensor is its own.

    `steps`: an optimizer steps in it. Where none does and the batch stays, its rounds are parts of one step.
    """
    if (not loop.loaders and not draws) or (not steps and _is_on_one_batch(facts, loop)):
        return
    step: ast.AST
    body: Sequence[ast.stmt]
    for unit in dict.fromkeys(facts.unit(call) for call in loop.backwards):
        if unit is loop.unit:
            step, body = loop.node, loop.node.body
        elif isinstance(unit, Function) and not isinstance(unit.node, ast.Lambda):
            step, body = unit.node, unit.body
        else:
            continue
        backwards = [call for call in loop.backwards if facts.unit(call) is unit]
        made = _Body(facts.tree(step), step, body, backwards, averaging)
        if not loop.loaders:
            made.drawn = writes(loop.node.target) if isinstance(loop.node, (ast.For, ast.AsyncFor)) else set()
        yield from made.balances(by_name=unit is loop.unit)


def _is_on_one_batch(facts: Facts, loop: LoopFact) -> bool:
    """Whether all rounds of a loop work on the batch that was there before it: `for _ in range(max_iter):`."""
    if not isinstance(loop.node, ast.For) or facts.loaders(facts.values(loop.node.iter)):
        return False
    calls = (node for node in rounds(loop.node) if isinstance(node, ast.Call))
    return not any("builtins.next" in facts.called(call) for call in calls)


class _Body:
    """The statements of one step, in their order."""

    def __init__(
        self,
        tree: Tree,
        step: ast.AST,
        body: Sequence[ast.stmt],
        backwards: Sequence[ast.Call],
        averaging: Averaging,
    ) -> None:
        nodes = list(_nodes(body))
        self._tree, self._step = tree, step
        self.drawn: set[str] | None = None  # what counts the steps, where each process draws its batches itself
        self._tests = [n for n in nodes if isinstance(n, _BRANCHES)]
        self._backwards = backwards
        self._averaging = averaging
        self._given = [n for n in nodes if isinstance(n, _Given) and n.value is not None]
        self._given.sort(key=lambda s: (s.lineno, s.col_offset))
        self._filled = self._of_filled(nodes)
        self._read: dict[str, int] = {}  # the first line that reads a place
        for node in nodes:
            if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
                text = text_of(node)
                self._read[text] = min(node.lineno, self._read.get(text, node.lineno))

    def _of_filled(self, nodes: Sequence[ast.AST]) -> set[str]:
        """The tensors into which a batch is copied, and what is computed from them: `real.data.copy_(images)`."""
        found: set[str] = set()
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            if getattr(call.func, "attr", "") == "copy_" and any(map(self._averaging.is_of_batch, call.args)):
                found |= {name for name in (_receiver(call),) if name}
        for _ in range(_DEEPEST if found else 0):
            for statement in self._given:
                if statement.value is not None and _mentions(statement.value, found):
                    found |= _places(statement)
        return found

    def balances(self, *, by_name: bool) -> Iterator[Balance]:
        """`by_name`: names, too, live from one step to the next."""
        first: dict[str, _Given] = {}
        for statement in self._given:
            for place in _places(statement):
                first.setdefault(place, statement)
        for place, statement in first.items():
            if (place.isidentifier() and not by_name) or not self._is_carried(place, statement):
                continue
            leaves = list(dict.fromkeys(self._leaves(place, _DEEPEST, frozenset())))
            if leaves and self._weighs(place):
                edits = [self._joined(leaf) for leaf in leaves]
                met = tuple(edit for edit in edits if edit is not None)
                yield Balance(place, statement, met if len(met) == len(edits) else None)
        yield from self._set_inside()

    def _set_inside(self) -> Iterator[Balance]:
        """`self.radius.data = torch.tensor(quantile(distances))`: what a tensor is set to, of a whole batch."""
        for statement in self._given:
            for target in targets_of(statement):
                if not isinstance(target, ast.Attribute) or target.attr != "data" or statement.value is None:
                    continue
                place = ast.unparse(target.value)
                if is_afresh(self._tree, statement, place, self._step):
                    continue
                if self._is_carried(place, statement) and self._averaging.is_of_batch(statement.value):
                    if self._weighs(place):
                        yield Balance(place, statement, None, of_batch=True)

    def _joined(self, leaf: ast.expr) -> Average | None:
        if self.drawn is not None:
            around = [n for n in self._tests if not _counts(n) and any(leaf is inner for inner in ast.walk(n))]
            tests = [n.test for n in around if isinstance(n, (ast.If, ast.While, ast.IfExp))]
            if len(tests) < len(around) or any(not reads(test) <= self.drawn for test in tests):
                return None
        return self._averaging.number(leaf, is_tensor=not _is_python(leaf))

    def _is_carried(self, place: str, statement: _Given) -> bool:
        """Whether a place is read before it is given its next value."""
        if isinstance(statement, ast.AugAssign) and ast.unparse(statement.target) == place:
            return True
        return place in self._read and self._read[place] <= statement.lineno

    def _weighs(self, place: str) -> bool:
        """Whether a place comes to a loss."""
        tainted = {place}
        for _ in range(2):
            for statement in self._given:
                assert statement.value is not None
                if _mentions(statement.value, tainted):
                    tainted |= _places(statement)
        return any(_mentions(call, tainted) for call in self._backwards)

    def _leaves(self, place: str, depth: int, seen: frozenset[str]) -> Iterator[ast.expr]:
        """What takes numbers out of the tensors of a batch, for a place."""
        for statement in self._given:
            if place in _places(statement) and statement.value is not None:
                found = list(self._taken(statement.value))
                yield from found
                if found or depth == 0:
                    continue
                for other in _texts(statement.value) - seen - {place}:
                    yield from self._leaves(other, depth - 1, seen | {place})

    def _taken(self, node: ast.expr) -> Iterator[ast.expr]:
        """The outermost expressions that turn a tensor of a batch into a number."""
        if _takes(node):
            is_own = self.drawn is not None or self._averaging.is_of_batch(node) or _mentions(node, self._filled)
            if is_own and (_is_python(node) or isinstance(node, ast.Subscript) or self._averaging.is_one(node)):
                yield node
            return
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from self._taken(child)


def _counts(node: ast.AST) -> bool:
    """`for i in range(n)`: all processes take as many rounds."""
    return isinstance(node, ast.For) and isinstance(node.iter, ast.Call) and ast.unparse(node.iter.func) == "range"


def _nodes(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of some statements without those of functions that they define."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node
            waiting += ast.iter_child_nodes(node)


def _receiver(call: ast.Call) -> str:
    """The place of `real` in `real.data.resize_(size).copy_(images)`."""
    node: ast.expr = call
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
        node = node.value if isinstance(node, ast.Attribute) and node.attr == "data" else node
    return ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""


def _places(statement: _Given) -> set[str]:
    return {text for target in targets_of(statement) for text in written(target)}


def _texts(node: ast.AST) -> set[str]:
    return {text_of(n) for n in walk(node) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))}


def _mentions(node: ast.AST, places: set[str]) -> bool:
    return not places.isdisjoint(_texts(node))


def _is_python(node: ast.expr) -> bool:
    """`x.item()`, `float(x)`: a number of Python."""
    if not isinstance(node, ast.Call):
        return False
    return getattr(node.func, "attr", "") == "item" or getattr(node.func, "id", "") == "float"


def _takes(node: ast.expr) -> bool:
    """Whether an expression is a number without a gradient: `x.item()`, `x.detach()`, `x.data[0]`, `float(x)`."""
    if _is_python(node):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEPS:
        return node.func.attr == "detach" or _takes(node.func.value)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and _takes(node.value)
    return isinstance(node, ast.Attribute) and node.attr == "data"
