"""What a number counts: steps of a process, batches of one process, or nothing that depends on how many there are.

`epoch * len(loader) + i` counts the steps of a process; N processes take N batches in each. Where such a count meets
another one (`step / len(loader)`) all is well. Where it meets a plain number or a length measured before prepare
(`step < 1000`), it must count what one process would have counted: N times as many.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import arguments, is_none
from migrate.analysis.units import Function
from migrate.programs.reach.frequency import Frequency, Rate
from migrate.programs.values.afresh import begins_in_each_step
from migrate.programs.values.bounds import grows_at_bounds
from migrate.programs.values.elements import elements, gone_through
from migrate.programs.values.lengths import Moments, lengths
from migrate.programs.values.numbers import is_zero
from migrate.programs.values.scopes import bound_in_scope
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program


class Count(Enum):
    """What a number counts."""

    NONE = "nothing"
    STEPS = "steps of a process"
    BATCHES = "batches of one process"
    PER_STEP = "something for each step"


class Met(Enum):
    """What a count of steps is set against."""

    STEPS = "another count of steps"
    NUMBER = "a number of batches"
    SHARE = "something for each step"  # `1 / step`
    MOMENT = "a certain batch"  # `step % 1000 == 0`: no multiple of it is sure to come by


@dataclass(frozen=True, slots=True)
class Measure:
    """What an expression counts, and the expressions in it that carry the count."""

    count: Count
    carriers: tuple[ast.expr, ...] = ()


@dataclass(frozen=True, slots=True)
class Meeting:
    """A place where a count of steps is used up."""

    met: Met
    node: ast.expr
    carriers: tuple[ast.expr, ...]


_NOTHING = Measure(Count.NONE)
#: Functions that keep what a number counts.
_KEEPING = frozenset(f"builtins.{name}" for name in "float int round abs".split()) | {"math.floor", "math.ceil"}


@dataclass(slots=True)
class Counts:
    """The counts in expressions of a program; `meetings` are those seen so far."""

    facts: Facts
    loops: Loops
    program: Program
    moments: Moments
    meetings: list[Meeting] = field(default_factory=list)
    _sources: Sources = field(init=False)
    _frequency: Frequency = field(init=False)
    _active: set[ast.AST] = field(default_factory=set)
    _known: dict[ast.AST, Measure] = field(default_factory=dict)
    _tested: set[ast.AST] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._sources = self.facts.once(Sources)
        self._frequency = Frequency(self.facts, self.loops)

    def is_per_batch(self, node: ast.AST) -> bool:
        """Whether code runs for each batch that is trained on."""
        return Rate.BATCH in self._frequency.of(node) and self._is_dealt_out(node)

    def _is_dealt_out(self, node: ast.AST) -> bool:
        """Whether data are dealt out where code runs: one loop of a program may play, and another run over a loader."""
        if not self.program.training_loaders:
            return True
        training = {loop.node: loop for loop in self.program.training}
        around = (node, *self.loops.around(node, self.facts.unit(node)))
        first = next((training[loop] for loop in around if loop in training), None)
        return first is None or bool(first.loaders)

    def used(self, node: ast.expr, made_with: Sequence[ast.Call] = ()) -> None:
        """Take an expression as the value that counts in the end.

        What it counts still is set against a number, or against the lengths that what takes it was made with.
        """
        is_in_steps = bool(made_with) and all(self.of(length).count is Count.STEPS for length in made_with)
        self._spend(node, self.of(node), Met.STEPS if is_in_steps else Met.NUMBER)

    def tests(self, node: ast.AST) -> None:
        """Take the conditions under which a node is reached, up to its function or training loop."""
        below = node
        for above in self._within_step(node):
            if isinstance(above, ast.If) and above not in self._tested and below is not above.test:
                self._tested.add(above)
                if not self.loops.updates.reached(above):  # the optimizer's own turn: accumulation
                    self.of(above.test)
            below = above

    def is_early(self, node: ast.expr) -> bool:
        """Whether an expression goes back to the length of a loader that is not prepared yet."""
        made = self._sources.behind([node])
        return any(
            self.moments.after(length) != {True} for each in made for length in lengths(self.facts, self.program, each)
        )

    def of(self, node: ast.expr) -> Measure:
        """What an expression counts."""
        if node in self._active:
            return _NOTHING
        if node not in self._known:
            self._active.add(node)
            self._known[node] = self._measured(node)
            self._active.discard(node)
        return self._known[node]

    def _measured(self, node: ast.expr) -> Measure:
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named(node)
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        if isinstance(node, ast.Call):
            return self._called(node)
        if isinstance(node, ast.Compare):
            return self._compared(node)
        if isinstance(node, ast.UnaryOp):
            return self.of(node.operand)
        if isinstance(node, ast.IfExp):
            self.of(node.test)
            return self._joined(self.of(node.body), self.of(node.orelse))
        if isinstance(node, ast.BoolOp):
            return self._joined(*[self.of(value) for value in node.values])
        if isinstance(node, ast.Subscript):
            return self._taken(node)
        if isinstance(node, (ast.List, ast.Tuple)):
            return self._joined(*[self.of(element) for element in node.elts])
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            return self.of(node.elt)
        return _NOTHING

    # --- names ------------------------------------------------------------------------------------------------------

    def _named(self, node: ast.Name | ast.Attribute) -> Measure:
        if self._is_counted(node):
            return Measure(Count.STEPS, (node,))
        changes = [
            b.statement.value for b in bound_in_scope(self.facts, node) if isinstance(b.statement, ast.AugAssign)
        ]
        found = [self.of(each) for each in (gone_through(self.facts, node) if isinstance(node, ast.Name) else ())]
        for expression in (*self._sources.given(node).expressions, *changes):
            found.append(self.of(expression))
            self.tests(expression)
        joined = self._joined(*found)
        if joined.count is Count.STEPS and self._is_local(node):
            carried = [each for one in found for each in one.carriers]
            if all(any(each is given for given in self._sources.given(node).expressions) for each in carried):
                return Measure(Count.STEPS, (node,))
        return joined

    def _is_local(self, node: ast.expr) -> bool:
        unit = self.facts.unit(node)
        return not (isinstance(node, ast.Name) and isinstance(unit, Function) and node.id in unit.parameter_names)

    def _counts_batches(self, binding: Binding, node: ast.Name | ast.Attribute) -> bool:
        statement = binding.statement
        if not isinstance(statement, ast.For) and self._grows_at_bounds(statement, binding.target):
            return False
        if begins_in_each_step(self.facts.tree(statement), statement, binding.target, self.is_per_batch):
            return False
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
            return self._is_regular(statement.value) and self.is_per_batch(statement)
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
            added = statement.value
            if isinstance(added.op, ast.Add) and ast.unparse(added.left) == binding.target:
                return self._is_regular(added.right) and self.is_per_batch(statement)
        if not isinstance(statement, ast.For) or not isinstance(node, ast.Name):
            return False
        if isinstance(statement.target, ast.Tuple):
            first = statement.target.elts[0]
            if not isinstance(first, ast.Name) or first.id != node.id:
                return False
            return Role.NUMBER in roles(self.facts.values(first)) and bool(self._loaders(statement))
        return self._is_range(statement.iter) and self._is_trained_in(statement)

    def _grows_at_bounds(self, statement: ast.AST, name: str) -> bool:
        if statement in self._active:
            return False
        self._active.add(statement)
        is_so = grows_at_bounds(self._within_step(statement), name, self._is_counted)
        self._active.discard(statement)
        return is_so

    def _is_counted(self, node: ast.Name | ast.Attribute) -> bool:
        return any(self._counts_batches(binding, node) for binding in bound_in_scope(self.facts, node))

    def _within_step(self, node: ast.AST) -> Iterator[ast.AST]:
        """What stands around a node, up to its function or training loop."""
        training = {loop.node for loop in self.program.training}
        for above in self.facts.tree(node).up(node):
            if above in training or isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                return
            yield above

    def _is_regular(self, added: ast.expr, depth: int = 3) -> bool:
        """What is added for each batch: a number, or the size of the batch."""
        if isinstance(added, ast.Constant):
            return isinstance(added.value, int)
        if isinstance(added, ast.Call):
            is_size = isinstance(added.func, ast.Attribute) and added.func.attr in ("size", "numel")
            return is_size or "builtins.len" in self.facts.called(added)
        if isinstance(added, ast.Subscript):
            return isinstance(added.value, ast.Attribute) and added.value.attr == "shape"
        if not isinstance(added, (ast.Name, ast.Attribute)) or not depth:
            return False
        given = self._sources.given(added).expressions
        if not given:
            return not roles(self.facts.values(added)) & {Role.STATISTIC, Role.TENSOR}
        return all(self._is_regular(expression, depth - 1) for expression in given)

    def _is_range(self, iterated: ast.expr) -> bool:
        return any(isinstance(n, ast.Call) and "builtins.range" in self.facts.called(n) for n in ast.walk(iterated))

    def _is_trained_in(self, loop: ast.For) -> bool:
        return any(loop is training.node for training in self.program.training) and self._is_dealt_out(loop)

    def _loaders(self, loop: ast.For) -> set[ast.AST]:
        return self.loops.loaders(loop) & self.program.training_loaders

    # --- arithmetic -------------------------------------------------------------------------------------------------

    def _arithmetic(self, node: ast.BinOp) -> Measure:
        left, right = self.of(node.left), self.of(node.right)
        steps = [m for m in (left, right) if m.count is Count.STEPS]
        if not steps:
            return self._without_steps(node, left, right)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            if len(steps) == 2:
                return self._whole(node, *steps)
            other = node.right if left.count is Count.STEPS else node.left
            if isinstance(other, ast.Constant) and isinstance(node.op, ast.Add) and other.value in (0, 1):
                return self._whole(node, *steps)
            if Count.BATCHES in (left.count, right.count):
                self._meet(Met.NUMBER, node, steps[0])
                return Measure(Count.BATCHES)
            return steps[0] if not self._is_count(other) else self._scaled(node, steps[0])
        if isinstance(node.op, ast.Mult) and len(steps) == 1:
            if Count.PER_STEP in (left.count, right.count):
                self._meet(Met.STEPS, node, left, right)
                return _NOTHING
            return steps[0]
        if isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)):
            return self._divided(node, left, right)
        self._meet(Met.NUMBER, node, *steps)
        return _NOTHING

    def _whole(self, node: ast.expr, *steps: Measure) -> Measure:
        """A sum that carries its count itself, where it is not made of what callers pass."""
        inside = set(ast.walk(node))
        carriers = self._joined(*steps).carriers
        return Measure(Count.STEPS, (node,) if inside.issuperset(carriers) else carriers)

    def _is_count(self, node: ast.expr) -> bool:
        """A number that a count is compared with by a difference; `1 - share` and the like wait for what becomes."""
        return not isinstance(node, ast.Constant)

    def _scaled(self, node: ast.expr, steps: Measure) -> Measure:
        self._meet(Met.NUMBER, node, steps)
        return _NOTHING

    def _without_steps(self, node: ast.BinOp, left: Measure, right: Measure) -> Measure:
        if Count.PER_STEP in (left.count, right.count):
            return left if left.count is Count.PER_STEP else right
        if isinstance(node.op, (ast.Div, ast.FloorDiv)) and left.count is right.count is Count.BATCHES:
            return _NOTHING
        return Measure(Count.BATCHES) if Count.BATCHES in (left.count, right.count) else _NOTHING

    def _divided(self, node: ast.BinOp, left: Measure, right: Measure) -> Measure:
        if left.count is right.count:
            self._meet(Met.STEPS, node, left, right)
            return left if isinstance(node.op, ast.Mod) else _NOTHING
        if right.count is Count.STEPS:
            if left.count is Count.BATCHES:
                self._meet(Met.NUMBER, node, right)
                return _NOTHING
            return _NOTHING if self._is_sum(node.left) else Measure(Count.PER_STEP, right.carriers)
        if isinstance(node.op, ast.Mod):
            self._meet(Met.MOMENT, node, left)
            return _NOTHING
        if right.count is Count.BATCHES:
            return self._scaled(node, left)
        return left

    def _is_sum(self, node: ast.expr) -> bool:
        """Whether a number has grown by something of each step: divided by their count it is a mean."""
        names = (inner for inner in ast.walk(node) if isinstance(inner, (ast.Name, ast.Attribute)))
        grown = (b.statement for name in names for b in bound_in_scope(self.facts, name))
        return any(isinstance(statement, ast.AugAssign) and self.is_per_batch(statement) for statement in grown)

    def _compared(self, node: ast.Compare) -> Measure:
        if any(map(is_none, node.comparators)):
            return _NOTHING  # whether there is a count
        sides = [node.left, *node.comparators]
        found = [self.of(side) for side in sides]
        steps = [one for one in found if one.count is Count.STEPS]
        if not steps:
            return _NOTHING
        if len(steps) == len(found):
            self._meet(Met.STEPS, node, *steps)
        elif not all(is_zero(side) for side, one in zip(sides, found, strict=True) if one.count is not Count.STEPS):
            is_order = all(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops)
            self._meet(Met.NUMBER if is_order else Met.MOMENT, node, *steps)
        return _NOTHING

    def _joined(self, *found: Measure) -> Measure:
        for count in (Count.STEPS, Count.PER_STEP, Count.BATCHES):
            mine = [one for one in found if one.count is count]
            if mine:
                return Measure(count, tuple(dict.fromkeys(each for one in mine for each in one.carriers)))
        return _NOTHING

    # --- calls and items --------------------------------------------------------------------------------------------

    def _called(self, node: ast.Call) -> Measure:
        if any(inner is node for inner in lengths(self.facts, self.program, node)):
            is_after = self.moments.after(node)
            return Measure(Count.STEPS, (node,)) if is_after == {True} else Measure(Count.BATCHES)
        given = arguments(node)
        found = [self.of(argument) for argument in given]
        called = self.facts.called(node)
        if called & _KEEPING and len(found) == 1:
            return found[0]
        if self.facts.targets(node):
            returned = [self._returned(expression) for expression in self._sources.given(node).expressions]
            return self._joined(*returned)
        steps = [one for one in found if one.count is Count.STEPS]
        if steps and called & {"builtins.min", "builtins.max"} and len(steps) == len(found):
            return self._joined(*steps)
        if steps:
            self._meet(Met.NUMBER, node, *steps)
            return _NOTHING
        return self._joined(*found)

    def _returned(self, expression: ast.expr) -> Measure:
        self.tests(expression)
        return self.of(expression)

    def _taken(self, node: ast.Subscript) -> Measure:
        """`schedule[step]`: the list is as long as the counts that it was made with say; `edges[0]`: its element."""
        if isinstance(node.slice, ast.Slice):
            return _NOTHING
        index = self.of(node.slice)
        if index.count is not Count.STEPS:
            return self._joined(*[self.of(each) for each in elements(self.facts, node.value, node.slice)])
        made = self._made_with(node.value)
        self._meet(Met.STEPS if made.count is Count.STEPS else Met.NUMBER, node, index, made)
        return _NOTHING

    def _made_with(self, node: ast.expr) -> Measure:
        """What a list is as long as, by the lengths that it was made with."""
        made = self._sources.behind(self._sources.given(node).expressions)
        found = {length: self.of(length) for each in made for length in lengths(self.facts, self.program, each)}
        if found and all(one.count is Count.STEPS for one in found.values()):
            return self._joined(*found.values())
        return Measure(Count.BATCHES)

    def _meet(self, met: Met, node: ast.expr, *measures: Measure) -> None:
        carriers = tuple(each for one in measures for each in one.carriers)
        self.meetings.append(Meeting(met, node, carriers))

    def _spend(self, node: ast.expr, measure: Measure, met: Met) -> None:
        if measure.count is Count.STEPS:
            self._meet(met, node, measure)
        elif measure.count is Count.PER_STEP:
            self._meet(Met.SHARE, node, measure)
