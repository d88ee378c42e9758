"""What is one process's own after a training loop, and what a program decides by it.

Each process trains on its share of the batches. The last `loss`, a list of outputs: of these every process has others.
To print them is harmless; to stop, to save or to set a learning rate by them lets the processes part ways.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import own_expressions, reads, writes
from migrate.analysis.units import Function
from migrate.programs.accumulators import appended, is_own, statements_after
from migrate.programs.joins import apart

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.accumulators import Accumulator
    from migrate.programs.joins import Join
    from migrate.programs.loops import LoopFact

_LEAVING: dict[type[ast.AST], str] = {
    ast.Break: "`break`",
    ast.Continue: "`continue`",
    ast.Return: "`return`",
    ast.Raise: "`raise`",
}
_SAVING = frozenset({"torch.save", "sys.exit", "builtins.exit", "os._exit"})
_SAME_ON_ALL = frozenset({"builtins.len", "builtins.type", "builtins.isinstance"})


@dataclass(frozen=True, slots=True)
class Decision:
    """Something done, or not, by a name that differs from process to process."""

    node: ast.AST
    what: str
    name: str


def left_over(
    facts: Facts, loop: LoopFact, accumulated: Collection[Accumulator], joined: Collection[Join]
) -> list[str]:
    """Names that are not joined, hold something of the process's own batches, and are read after the loop."""
    read: set[str] = set()
    new: set[str] = set()
    for statement in statements_after(facts, loop.node):
        if isinstance(statement, (ast.For, ast.While)):
            new |= writes(statement)  # another loop sets its own names before it reads them
            continue
        read |= reads(statement) - writes(statement) - new
        read |= {ast.unparse(n) for n in ast.walk(statement) if isinstance(n, (ast.Attribute, ast.Subscript))}
    return sorted(_own_names(facts, loop, accumulated, joined) & read)


def decisions(
    facts: Facts, loop: LoopFact, accumulated: Collection[Accumulator], joined: Collection[Join]
) -> Iterator[Decision]:
    """What is decided after the loop by one process's own values, in its function and in those that call it."""
    own = _own_names(facts, loop, accumulated, joined)
    yield from _Trail(facts, own).follow(statements_after(facts, loop.node), loop.node)


def _own_names(
    facts: Facts, loop: LoopFact, accumulated: Collection[Accumulator], joined: Collection[Join]
) -> set[str]:
    kept: set[str] = set()
    for node in ast.walk(loop.node):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                kept |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and is_own(facts, loop, n)}
    kept |= {name for name, added in appended(facts, loop).items() if any(is_own(facts, loop, v) for v in added)}
    kept |= _own_places(facts, loop) | apart(facts, loop, joined).keys()
    return kept - {accumulator.name for accumulator in accumulated if not _is_read_early(accumulator)}


def _is_read_early(accumulator: Accumulator) -> bool:
    """Whether it goes on growing over an outer loop, and is read there before the shares are joined."""
    within = {id(node) for node in ast.walk(accumulator.loop.node)}
    return any(
        isinstance(node, ast.Name) and node.id == accumulator.name and isinstance(node.ctx, ast.Load)
        for node in ast.walk(accumulator.after)
        if id(node) not in within
    )


def _own_places(facts: Facts, loop: LoopFact) -> set[str]:
    """Attributes and items that the loop itself sets, adds to or appends to, as they are written: `self.losses`."""
    found: set[str] = set()
    for node in ast.walk(loop.node):
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AugAssign):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING:
            pairs = [(node.func.value, argument) for argument in node.args]
        else:
            continue
        found |= {
            ast.unparse(target)
            for target, value in pairs
            if isinstance(target, (ast.Attribute, ast.Subscript)) and is_own(facts, loop, value)
        }
    return found


_ADDING = frozenset({"append", "extend", "add", "insert"})


def _written(target: ast.expr) -> set[str]:
    """The names, attributes and items that a target gives a value, as they are written."""
    if isinstance(target, (ast.Attribute, ast.Subscript)):
        return {ast.unparse(target)}
    return writes(target)


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _is_stored_attribute(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)


def _sets_rate(statement: ast.Assign | ast.AugAssign) -> bool:
    """`group["lr"] = ...`."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return any(
        isinstance(to, ast.Subscript) and isinstance(to.slice, ast.Constant) and to.slice.value == "lr"
        for to in targets
    )


@dataclass(slots=True)
class _Trail:
    """The names that hold one process's own, as they are handed on from statement to statement."""

    facts: Facts
    own: set[str]
    calls: set[int] = field(default_factory=set)  # calls of functions that return such a value
    seen: set[ast.AST] = field(default_factory=set)

    def follow(self, statements: Sequence[ast.stmt], start: ast.stmt) -> Iterator[Decision]:
        for statement in statements:
            yield from self._statement(statement)
        for above in self.facts.tree(start).up(start):
            if isinstance(above, ast.While) and (name := self._name(above.test)):
                yield Decision(above, "the loop", name)
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
                break

    def _statement(self, statement: ast.stmt) -> Iterator[Decision]:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        if isinstance(statement, ast.If) and (name := self._name(statement.test)):
            yield from (Decision(statement, what, name) for what in self._done(statement))
        if isinstance(statement, ast.For):
            self.own -= writes(statement.target)
        yield from self._schedules(statement)
        yield from self._judged(statement)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            self._hand_on(statement, statement.value)
        elif isinstance(statement, ast.AugAssign) and self._name(statement.value):
            self.own |= _written(statement.target)
        elif isinstance(statement, ast.Expr):
            self._kept(statement.value)
        elif isinstance(statement, ast.Return) and statement.value is not None:
            yield from self._return(statement.value)
        for block in (getattr(statement, part, ()) for part in ("body", "orelse", "finalbody")):
            for inner in block:
                yield from self._statement(inner)

    def _name(self, node: ast.expr) -> str | None:
        """The name in an expression by which it differs from process to process."""
        same = {
            id(inner)
            for call in ast.walk(node)
            if isinstance(call, ast.Call) and self.facts.called(call) & _SAME_ON_ALL
            for inner in ast.walk(call)
        }
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id in self.own and id(inner) not in same:
                return inner.id
            if isinstance(inner, (ast.Attribute, ast.Subscript)) and id(inner) not in same:
                if (text := ast.unparse(inner)) in self.own:
                    return text
            if id(inner) in self.calls:
                return ast.unparse(inner)
        return None

    def _done(self, statement: ast.If, *, leaving: bool = True) -> Iterator[str]:
        for inner in (n for part in (*statement.body, *statement.orelse) for n in ast.walk(part)):
            if leaving and type(inner) in _LEAVING:
                yield _LEAVING[type(inner)]
                return
            if isinstance(inner, ast.Call) and (self.facts.called(inner) & _SAVING or self._saves(inner)):
                yield f"{ast.unparse(inner.func)}()"
                return
            if isinstance(inner, (ast.Assign, ast.AugAssign)) and _sets_rate(inner):
                yield "the learning rate"
                return

    def _saves(self, call: ast.Call) -> bool:
        """Whether a function of the project saves."""
        return any(
            isinstance(node, ast.Call) and self.facts.called(node) & _SAVING
            for unit in self.facts.targets(call)
            for node in ast.walk(unit.node)
        )

    def _schedules(self, statement: ast.stmt) -> Iterator[Decision]:
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return
        call = statement.value
        if isinstance(call.func, ast.Attribute) and Role.SCHEDULER in roles(self.facts.values(call.func.value)):
            for argument in call.args:
                if name := self._name(argument):
                    yield Decision(call, f"{ast.unparse(call.func)}()", name)

    def _judged(self, statement: ast.stmt) -> Iterator[Decision]:
        """`early_stopping(loss, model)`: a function of the project that decides by what it is given."""
        for part in own_expressions(statement):
            for call in ast.walk(part):
                if not isinstance(call, ast.Call) or not (
                    name := next(filter(None, map(self._name, _given(call))), "")
                ):
                    continue
                if any(self._is_judge(target, call) for target in self.facts.targets(call)):
                    yield Decision(call, f"{ast.unparse(call.func)}()", name)

    def _is_judge(self, unit: Function, call: ast.Call) -> bool:
        """Whether a function saves, or changes its object, under a test of a parameter that is given such a value."""
        position = 1 if unit.owner is not None and unit.positional else 0
        named = {k.arg for k in call.keywords if k.arg and self._name(k.value)}
        placed = zip(unit.positional[position:], call.args, strict=False)
        trail = _Trail(self.facts, named | {parameter.arg for parameter, given in placed if self._name(given)})
        for node in ast.walk(unit.node):
            if isinstance(node, ast.Assign):
                trail._hand_on(node, node.value)
            if isinstance(node, ast.If) and trail._name(node.test):
                inside = [n for part in (*node.body, *node.orelse) for n in ast.walk(part)]
                if any(True for _ in trail._done(node, leaving=False)) or any(map(_is_stored_attribute, inside)):
                    return True
        return False

    def _hand_on(self, statement: ast.Assign | ast.AnnAssign, value: ast.expr) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs = list(zip(target.elts, value.elts, strict=True))
            else:
                pairs = [(target, value)]
            for to, given in pairs:
                if isinstance(given, ast.Dict):
                    self._itemised(ast.unparse(to), given)
                elif self._name(given):
                    self.own |= _written(to)
                else:
                    self.own -= _written(to)

    def _itemised(self, target: str, given: ast.Dict) -> None:
        """`log = {"loss": loss, "val_loss": val_loss}`: one item may be one process's own, another not."""
        self.own.discard(target)
        for key, value in zip(given.keys, given.values, strict=True):
            if self._name(value):
                self.own.add(f"{target}[{ast.unparse(key)}]" if isinstance(key, ast.Constant) else target)

    def _kept(self, node: ast.expr) -> None:
        """`history["loss"].append(loss)`."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING:
            if any(self._name(given) for given in node.args):
                self.own.add(ast.unparse(node.func.value))

    def _return(self, value: ast.expr) -> Iterator[Decision]:
        """Go on where the function was called, with what the result is given to."""
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        positions = [i for i, part in enumerate(parts) if part is not value or not isinstance(part, ast.Dict)]
        positions = [i for i in positions if self._name(parts[i])]
        unit = self.facts.unit(value)
        items = self._items(value)
        if not (positions or items) or value in self.seen:
            return
        if items and not positions:
            for caller in self.facts.callers(unit):  # type: ignore[arg-type]
                yield from self._with_items(caller.node, items, value)
            return
        for caller in self.facts.callers(unit):  # type: ignore[arg-type]
            yield from self._caller(caller.node, positions, len(parts), value)

    def _items(self, value: ast.expr) -> list[str]:
        """The items of a dictionary that are one process's own, as they are written behind it: `["loss"]`."""
        if isinstance(value, ast.Dict):
            own = _Trail(self.facts, set(self.own), self.calls)
            own._itemised("", value)
            return sorted(text for text in own.own - self.own if text.startswith("["))
        text = ast.unparse(value)
        return sorted(own.removeprefix(text) for own in self.own if own.startswith(f"{text}["))

    def _with_items(self, call: ast.Call, items: list[str], value: ast.expr) -> Iterator[Decision]:
        statement = self.facts.tree(call).statement(call)
        if isinstance(statement, ast.Assign) and statement.value is call:
            own = {f"{ast.unparse(statement.targets[0])}{item}" for item in items}
            trail = _Trail(self.facts, own, set(), self.seen | {value})
            yield from trail.follow(statements_after(self.facts, statement), statement)
        else:  # handed on as it is: all of it is taken for one process's own
            yield from self._caller(call, [0], 1, value)

    def _caller(self, call: ast.Call, positions: list[int], count: int, value: ast.expr) -> Iterator[Decision]:
        tree = self.facts.tree(call)
        statement = next((above for above in tree.up(call) if isinstance(above, ast.stmt)), None)
        if statement is None:
            return
        trail = _Trail(self.facts, set(), {id(call)}, self.seen | {value})
        target = statement.targets[0] if isinstance(statement, ast.Assign) and statement.value is call else None
        if isinstance(target, ast.Tuple) and len(target.elts) == count:
            trail.own = {name for i in positions for name in writes(target.elts[i])}
            trail.calls = set()
            yield from trail.follow(statements_after(self.facts, statement), statement)
        else:
            yield from trail.follow([statement, *statements_after(self.facts, statement)], statement)
