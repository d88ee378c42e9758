"""The way of one process's own values through a program, and what is decided by them.

The names that hold such values are followed from statement to statement, into the functions that are given one, to the
callers of those that return one, and to all code that reads an attribute or a global that holds one. What is set where
such a value decides is one process's own, too.
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import (
    FUNCTIONS,
    LOOPS,
    TRIES,
    arguments,
    blocks,
    own_expressions,
    own_names,
    targets_of,
    walk,
    writes,
)
from migrate.analysis.texts import text_of
from migrate.analysis.units import Class, Function, Module
from migrate.programs.processes.alike import goes_by, sets_rate
from migrate.programs.processes.junctions import junctions
from migrate.programs.shares.ground import DEEPEST, Decision, is_property, root_of
from migrate.programs.values.accumulators import statements_after
from migrate.programs.values.kept import FILLING, filled, place_of, set_in, written
from migrate.programs.values.sources import received

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.shares.ground import Ground

_SAME_ON_ALL = frozenset({"builtins.len", "builtins.type", "builtins.isinstance"})
#: Functions that put their second argument into their first.
_INTO_FIRST = frozenset({"heapq.heappush", "bisect.insort", "bisect.insort_left", "bisect.insort_right"})
_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)


@dataclass(slots=True)
class Trail:
    """The names of a unit that hold one process's own, as they are handed on from statement to statement."""

    ground: Ground
    unit: Unit
    own: set[str]  # as they are written: `loss`, `self.losses`, `log['loss']`
    depth: int = 0
    calls: set[int] = field(default_factory=set)  # calls of functions that return such a value
    skipped: ast.stmt | None = None  # the training loop that the trail comes from
    is_entered: bool = False  # from a call that goes on with what it gives back
    gives: bool = False  # such a value
    in_step: bool = False  # of a training loop, where what goes by the batch itself is agreed on

    @property
    def facts(self) -> Facts:
        return self.ground.facts

    # --- where it goes ----------------------------------------------------------------------------------------------

    def after(self, start: ast.stmt) -> Iterator[Decision]:
        """From what follows a statement on; over what precedes it, too, where an outer loop comes back to that."""
        self.skipped = start
        yield from self._block(statements_after(self.facts, start))
        outer: ast.For | ast.AsyncFor | ast.While | None = None
        for above in self.facts.tree(start).up(start):
            if isinstance(above, _DEFINITIONS):
                break
            if isinstance(above, LOOPS):
                outer = above
            if isinstance(above, ast.While) and (name := self.name(above.test)):
                yield Decision(above, "the loop", name)
        if outer is not None:
            yield from self._block(outer.body)
        yield from self.elsewhere()

    def over(self, body: Sequence[ast.stmt]) -> Iterator[Decision]:
        """Over a block, without what it calls, and again: what it leaves comes back."""
        self.depth = DEEPEST + 1
        for _ in range(2):
            yield from self._block(body)

    def through(self) -> Iterator[Decision]:
        """Through the whole unit, and on."""
        yield from self._block(self.unit.tree.body if isinstance(self.unit, Module) else self.unit.body)
        yield from self.elsewhere()

    def elsewhere(self) -> Iterator[Decision]:
        """In other units, which read attributes and globals that hold such a value."""
        for unit, names in self._readers().items():
            if not self.ground.is_idle(unit):
                yield from self._on(unit, names).through_once()

    def through_once(self) -> Iterator[Decision]:
        """Through the unit, unless another trail went through it with the same names."""
        key = (root_of(self.unit), frozenset(self.own))
        if key not in self.ground.left:
            self.ground.left[key] = self
            yield from self.through()

    def _on(self, unit: Unit, own: Iterable[str]) -> Trail:
        return type(self)(self.ground, unit, set(own), self.depth + 1)

    def _readers(self) -> dict[Unit, set[str]]:
        found: dict[Unit, set[str]] = {}
        if self.depth > DEEPEST:
            return found
        for node, rest in self._held():
            owners = origins(self.facts.values(node.value), Role.INSTANCE)
            for reader in self.ground.attributes.get(node.attr, ()):
                unit = self.facts.unit(reader)
                if unit is not self.unit and owners & origins(self.facts.values(reader.value), Role.INSTANCE):
                    found.setdefault(unit, set()).add(ast.unparse(reader) + rest)
        for name in self._globals():
            units: tuple[Unit, ...] = (*self.facts.functions, self.unit.module)
            for unit in units:
                if unit.module is self.unit.module and unit is not self.unit and self._reads_global(unit, name):
                    found.setdefault(unit, set()).add(name)
        return found

    def _held(self) -> Iterator[tuple[ast.Attribute, str]]:
        """The attributes of objects that hold such a value, and what is written behind them: `["loss"]`."""
        places = {own for own in self.own if "." in own}
        seen: set[str] = set()
        for node in self.facts.own(self.unit) if places else ():
            if not isinstance(node, ast.Attribute) or (text := ast.unparse(node)) in seen:
                continue
            seen.add(text)
            for own in places:
                if own == text or own.startswith(f"{text}["):
                    yield node, own.removeprefix(text)

    def _globals(self) -> set[str]:
        names = {own.partition("[")[0] for own in self.own}
        if isinstance(self.unit, Module):
            return {name for name in names if name.isidentifier()}
        declared = self.facts.own(self.unit).of(ast.Global)
        return names & {name for node in declared for name in node.names}

    def _reads_global(self, unit: Unit, name: str) -> bool:
        nodes = list(self.facts.own(unit))
        if isinstance(unit, Function):
            is_global = any(isinstance(node, ast.Global) and name in node.names for node in nodes)
            names = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
            if name in unit.parameter_names or (not is_global and any(isinstance(n.ctx, ast.Store) for n in names)):
                return False
        return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in nodes)

    # --- statements -------------------------------------------------------------------------------------------------

    def _block(self, statements: Sequence[ast.stmt]) -> Iterator[Decision]:
        for statement in statements:
            if statement is not self.skipped and not isinstance(statement, _DEFINITIONS):
                yield from self.statement(statement)

    def statement(self, statement: ast.stmt) -> Iterator[Decision]:
        yield from self._told(statement)
        yield from self._in_expressions(statement)
        test = _asked(statement)
        name = self.name(test) if test is not None else None
        again = [test] if isinstance(statement, ast.While) and test is not None else []
        parts = [*again, *(part for block in blocks(statement) for part in block)]
        what = self.ground.done(self.unit, parts, in_step=self.in_step) if name is not None else None
        if name is not None and what is not None:
            yield Decision(statement, "the loop" if isinstance(statement, ast.While) else what, name, test)
        yield from self._bind(statement)
        yield from self._given_back(statement)
        yield from self._inside(statement)
        if name is not None and not (self.in_step and what is not None):  # all leave a step together, or none does
            self.own |= {text for block in blocks(statement) for inner in block for text in set_in(inner)}

    def _inside(self, statement: ast.stmt) -> Iterator[Decision]:
        """Through the blocks of a statement; of those of which one runs, what any of them leaves counts afterwards."""
        if not isinstance(statement, (ast.If, ast.Match, *TRIES)):
            for block in blocks(statement):
                yield from self._block(block)
            return
        entry, left = set(self.own), set[str]()
        for block in blocks(statement):
            self.own = entry | left if isinstance(statement, TRIES) else set(entry)
            yield from self._block(block)
            left |= self.own
        is_one = isinstance(statement, TRIES) or (isinstance(statement, ast.If) and bool(statement.orelse))
        self.own = left if is_one else left | entry

    def _in_expressions(self, statement: ast.stmt) -> Iterator[Decision]:
        """`scheduler.step() if loss > best else None`."""
        tree = self.facts.tree(root_of(self.unit))
        nodes = (node for part in own_expressions(statement) for node in walk(part)) if self.own or self.calls else ()
        for each in (junction for node in nodes for junction in junctions(tree, node)):
            if (name := self.name(each.test)) is not None:
                parts = itertools.chain(*each.sides)
                if (what := self.ground.done(self.unit, parts, in_step=self.in_step)) is not None:
                    yield Decision(each.node, what, name, each.test)

    def _bind(self, statement: ast.stmt) -> Iterator[Decision]:
        for inner in (node for part in own_expressions(statement) for node in walk(part)):
            if isinstance(inner, ast.NamedExpr) and self.name(inner.value):
                self.own |= written(inner.target)
        if isinstance(statement, ast.For):
            if self.name(statement.iter):
                self.own |= writes(statement.target)
            else:
                self.own -= writes(statement.target)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
            self._hand_on(statement, statement.value)
        elif isinstance(statement, ast.AugAssign) and self.name(statement.value):
            self.own |= written(statement.target)
        if isinstance(statement, (ast.Assign, ast.AugAssign)) and sets_rate(statement):
            if name := self.name(statement.value):
                yield Decision(statement, "the learning rate", name)

    def _hand_on(self, statement: ast.Assign | ast.AnnAssign, value: ast.expr) -> None:
        for target in targets_of(statement):
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs = list(zip(target.elts, value.elts, strict=True))
            else:
                pairs = [(target, value)]
            for to, given in pairs:
                is_own, items = self.name(given) is not None, self.items(given)
                self._forget(to)
                if is_own and not items:
                    self.own |= written(to)
                self.own |= {f"{ast.unparse(to)}{item}" for item in items}

    def _forget(self, target: ast.expr) -> None:
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant):
            return
        for text in written(target):
            self.own -= {own for own in self.own if own == text or own.startswith(f"{text}[")}

    def items(self, value: ast.expr) -> list[str]:
        """The items of a dictionary that are one process's own, as they are written behind it: `["loss"]`."""
        if isinstance(value, ast.Dict) and all(isinstance(key, ast.Constant) for key in value.keys):
            pairs = zip(value.keys, value.values, strict=True)
            return sorted(f"[{ast.unparse(key)}]" for key, given in pairs if key is not None and self.name(given))
        if isinstance(value, (ast.Name, ast.Attribute)) and (text := ast.unparse(value)) not in self.own:
            return sorted(own.removeprefix(text) for own in self.own if own.startswith(f"{text}["))
        return []

    # --- expressions ------------------------------------------------------------------------------------------------

    def name(self, node: ast.expr) -> str | None:
        """The name in an expression by which it differs from process to process."""
        if not (self.own or self.calls):
            return None
        same = own_names(node).union(*(walk(part) for part in walk(node) if self._is_same(part)))
        for inner in walk(node):
            if inner in same:
                continue
            if id(inner) in self.calls:
                return text_of(inner)
            if isinstance(inner, (ast.Name, ast.Attribute, ast.Subscript)) and (text := text_of(inner)):
                if text in self.own or (not isinstance(inner, ast.Subscript) and self._is_taken_whole(inner, text)):
                    return text
        return None

    def _is_same(self, node: ast.AST) -> bool:
        """Whether an expression is the same on all processes, whatever its parts are."""
        if isinstance(node, ast.Call):
            return bool(self.facts.called(node) & _SAME_ON_ALL)
        return isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)

    def _is_taken_whole(self, node: ast.expr, text: str) -> bool:
        """Whether a dictionary of which some items are own is read other than by a key that is written out."""
        if not any(own.startswith(f"{text}[") for own in self.own):
            return False
        parent = self.facts.tree(node).parents.get(node)
        return not (isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Constant))

    def _told(self, statement: ast.stmt) -> Iterator[Decision]:
        """What the calls in a statement make of what they are given."""
        for part in own_expressions(statement):
            for call in walk(part).of(ast.Call):
                given = arguments(call)
                name = next(filter(None, map(self.name, given)), None)
                if name is None:
                    continue
                if told := next(filter(None, map(self.name, goes_by(self.facts, call))), None):
                    yield Decision(call, f"{ast.unparse(call.func)}()", told)
                self._filled(call)
                for target in self.facts.targets(call):
                    yield from self._enter(call, target)

    def _filled(self, call: ast.Call) -> None:
        """`history["loss"].append(loss)`."""
        if isinstance(call.func, ast.Attribute) and call.func.attr in FILLING and not self.facts.targets(call):
            self.own |= place_of(filled(call))
        elif self.facts.called(call) & _INTO_FIRST and call.args:
            self.own |= place_of(call.args[0])

    def _enter(self, call: ast.Call, target: Function) -> Iterator[Decision]:
        """Through a function that is given such a value, and what that leaves behind."""
        if self.depth > DEEPEST:
            return
        passed = _passed(call, target)
        itself = target.itself.arg if target.itself is not None else None
        own = {name for name, given in passed.items() if name != itself and self.name(given)}
        key = (target.node, frozenset(own))
        if not own:
            return
        if (trail := self.ground.left.get(key)) is None:
            trail = self.ground.left[key] = self._on(target, own)
            trail.is_entered = True
            yield from trail.through()
        if trail.gives:
            self.calls.add(id(call))
        for name, given in passed.items():
            if name in trail.own and name not in own:
                self.own |= place_of(given)
            if place := place_of(given):
                self.own |= {
                    f"{min(place)}{left.removeprefix(name)}" for left in trail.own if left.startswith(f"{name}.")
                }

    # --- callers ----------------------------------------------------------------------------------------------------

    def _given_back(self, statement: ast.stmt) -> Iterator[Decision]:
        if isinstance(statement, ast.Return) and statement.value is not None:
            yield from self._return(statement.value)
        for inner in (node for part in own_expressions(statement) for node in walk(part)):
            if isinstance(inner, (ast.Yield, ast.YieldFrom)) and inner.value is not None:
                yield from self._return(inner.value)

    def _return(self, value: ast.expr) -> Iterator[Decision]:
        """Go on where the function was called, with what the result is given to."""
        parts = value.elts if isinstance(value, ast.Tuple) else [value]
        items = self.items(value)
        positions = [i for i, part in enumerate(parts) if self.name(part)]
        if not positions or not isinstance(self.unit, Function):
            return
        self.gives = True
        if self.depth > DEEPEST:
            return
        for unit, names in self._property_readers(self.unit).items():
            yield from self._on(unit, names).through_once()
        if self.is_entered:
            return
        for caller in self.facts.callers(self.unit):
            yield from self._caller(caller.node, positions, len(parts), items)

    def _property_readers(self, method: Function) -> dict[Unit, set[str]]:
        """Where a method is read like an attribute, in each unit as it is written there."""
        found: dict[Unit, set[str]] = {}
        if method.owner is not None and is_property(method):
            for reader in self.ground.attributes.get(method.name, ()):
                classes = [value.unit for value in self.facts.values(reader.value) if isinstance(value.unit, Class)]
                if any(method.owner in cls.mro() for cls in classes):
                    found.setdefault(self.facts.unit(reader), set()).add(ast.unparse(reader))
        return found

    def _caller(self, call: ast.AST, positions: list[int], count: int, items: list[str]) -> Iterator[Decision]:
        tree = self.facts.tree(call)
        statement = next((above for above in tree.up(call) if isinstance(above, ast.stmt)), None)
        if statement is None or isinstance(statement, _DEFINITIONS):
            return
        trail = self._on(self.facts.unit(call), ())
        is_given = isinstance(statement, ast.Assign) and statement.value is call
        target = statement.targets[0] if isinstance(statement, ast.Assign) and is_given else None
        if isinstance(target, ast.Tuple) and len(target.elts) == count:
            trail.own = {text for i in positions for text in written(target.elts[i])}
        elif target is not None and items:
            trail.own = {f"{ast.unparse(target)}{item}" for item in items}
        else:
            trail.calls = {id(call)}
            yield from trail.statement(statement)
        if not self._was_here(statement, trail):
            yield from trail.after(statement)

    def _was_here(self, statement: ast.stmt, trail: Trail) -> bool:
        key = (statement, frozenset(trail.own))
        return self.ground.left.setdefault(key, trail) is not trail


def _asked(statement: ast.stmt) -> ast.expr | None:
    """What a statement asks to decide what becomes of the blocks in it."""
    if isinstance(statement, (ast.If, ast.While)):
        return statement.test
    return statement.subject if isinstance(statement, ast.Match) else None


def _passed(call: ast.Call, target: Function) -> dict[str, ast.expr]:
    """What the parameters of a function get; the object itself where it is a method's."""
    own: dict[str, ast.expr] = {}
    if (itself := target.itself) is not None:
        if target.name == "__call__":
            own[itself.arg] = call.func
        elif isinstance(call.func, ast.Attribute):
            own[itself.arg] = call.func.value
    return own | received(call, target)
