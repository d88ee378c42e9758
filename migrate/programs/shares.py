"""What is one process's own after a training loop, and what a program decides by it.

Each process trains on its share of the batches. The last `loss`, a list of outputs: of these every process has others.
To print them is harmless; to stop, to save or to set a learning rate by them lets the processes part ways.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import reads, writes
from migrate.programs.accumulators import appended, is_own, statements_after

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.accumulators import Accumulator
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


def left_over(facts: Facts, loop: LoopFact, joined: Collection[Accumulator]) -> list[str]:
    """Names that are not joined, hold something of the process's own batches, and are read after the loop."""
    read: set[str] = set()
    for statement in statements_after(facts, loop.node):
        if isinstance(statement, (ast.For, ast.While)):
            continue  # another loop sets its own names before it reads them
        read |= reads(statement) - writes(statement)
        read |= {ast.unparse(n) for n in ast.walk(statement) if isinstance(n, (ast.Attribute, ast.Subscript))}
    return sorted(_own_names(facts, loop, joined) & read)


def decisions(facts: Facts, loop: LoopFact, joined: Collection[Accumulator]) -> Iterator[Decision]:
    """What is decided after the loop by one process's own values, in its function and in those that call it."""
    own = _own_names(facts, loop, joined)
    yield from _Trail(facts, own).follow(statements_after(facts, loop.node), loop.node)


def _own_names(facts: Facts, loop: LoopFact, joined: Collection[Accumulator]) -> set[str]:
    kept: set[str] = set()
    for node in ast.walk(loop.node):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                kept |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name) and is_own(facts, loop, n)}
    kept |= {name for name, added in appended(facts, loop).items() if any(is_own(facts, loop, v) for v in added)}
    return (kept | _own_places(facts, loop)) - {accumulator.name for accumulator in joined}


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


_ADDING = frozenset({"append", "extend"})


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
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            self._hand_on(statement, statement.value)
        elif isinstance(statement, ast.AugAssign) and self._name(statement.value):
            self.own |= writes(statement.target)
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

    def _done(self, statement: ast.If) -> Iterator[str]:
        for inner in (n for part in (*statement.body, *statement.orelse) for n in ast.walk(part)):
            if type(inner) in _LEAVING:
                yield _LEAVING[type(inner)]
                return
            if isinstance(inner, ast.Call) and self.facts.called(inner) & _SAVING:
                yield f"{ast.unparse(inner.func)}()"
                return

    def _schedules(self, statement: ast.stmt) -> Iterator[Decision]:
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            return
        call = statement.value
        if isinstance(call.func, ast.Attribute) and Role.SCHEDULER in roles(self.facts.values(call.func.value)):
            for argument in call.args:
                if name := self._name(argument):
                    yield Decision(call, f"{ast.unparse(call.func)}()", name)

    def _hand_on(self, statement: ast.Assign | ast.AnnAssign, value: ast.expr) -> None:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for target in targets:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs = list(zip(target.elts, value.elts, strict=True))
            else:
                pairs = [(target, value)]
            for to, given in pairs:
                if self._name(given):
                    self.own |= writes(to)
                else:
                    self.own -= writes(to)

    def _return(self, value: ast.expr) -> Iterator[Decision]:
        """Go on where the function was called, with what the result is given to."""
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        positions = [i for i, part in enumerate(parts) if self._name(part)]
        unit = self.facts.unit(value)
        if not positions or value in self.seen:
            return
        for caller in self.facts.callers(unit):  # type: ignore[arg-type]
            yield from self._caller(caller.node, positions, len(parts), value)

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
