"""Gradient accumulation by hand: which loops the accelerator's windows fit exactly, and why the others stay.

`accumulate` counts micro-steps from the start of each pass, steps after every k-th and after the last one of a pass,
and `backward` divides by k. A loop that does just that gives way to it. One that leaves the last, incomplete window
open carries gradients into the next epoch, which nothing of the accelerator does: it stays as it is, and is right on
several processes, since the average of sums is the sum of averages.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from migrate.analysis.known.training import CLIPPING
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import LOOPS, same, walk
from migrate.analysis.units import Function, module_of
from migrate.programs.amp.switch import Stays
from migrate.programs.argument import Argument
from migrate.programs.training.division import Division, division
from migrate.programs.values.conditions import needs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.program import Program


@dataclass(frozen=True, slots=True)
class Window:
    """A loop that accumulates, as the accelerator does it."""

    loop: LoopFact
    test: ast.If  # whose body ends a window
    first: ast.stmt  # the first statement of a micro-step; the test is the last
    models: tuple[str, ...]  # as they are called in the loop
    division: Division
    is_plain: bool  # the window only clips, steps and clears: it needs no test
    is_counter_read: bool  # the number of the batch is used for other things, too

    def has_within(self, facts: Facts, loops: Loops, call: ast.Call) -> bool:
        """Whether a call happens in every micro-step, not only where the window ends."""
        return self.loop.node in loops.around(call, facts.unit(call)) and call not in walk(self.test)


@dataclass(frozen=True, slots=True)
class Accumulated:
    """The decisions about a program's gradient accumulation."""

    windows: tuple[Window, ...] = ()
    arguments: tuple[Argument, ...] = ()
    kept: tuple[tuple[ast.AST, str], ...] = ()  # what stays by hand, and why

    def by_hand(self, why: str) -> Accumulated:
        """The decision to leave everything as it is."""
        return Accumulated(kept=tuple((window.test, why) for window in self.windows)) if self.windows else self


def accumulation(facts: Facts, loops: Loops, program: Program) -> Accumulated:
    """How the loops of a program accumulate; all do it in the same way, or all stay."""
    tests = {loop: test for loop in program.training if (test := _test(facts, loops, loop)) is not None}
    if not tests:
        return Accumulated()
    found: list[tuple[Window, ast.expr]] = []
    for loop in program.training:
        try:
            found.append(_Reader(facts, loops, program, loop, tests.get(loop)).read())
        except Stays as stays:
            why = f"{stays.why} (line {getattr(stays.node, 'lineno', 0)})"
            return Accumulated(kept=tuple((test, why) for test in tests.values()))
    steps = found[0][1]
    if any(not same(steps, other) for _, other in found):
        return Accumulated(kept=tuple((test, "the loops have different windows") for test in tests.values()))
    argument = Argument("gradient_accumulation_steps", ast.unparse(steps), frozenset(needs(steps)))
    return Accumulated(tuple(window for window, _ in found), (argument,))


def clips_outside(facts: Facts, window: Window) -> bool:
    """Whether gradients are clipped before they are complete."""
    return _clips_before(facts, window.loop, window.test)


def clips_early(facts: Facts, loops: Loops, program: Program) -> bool:
    """Whether some loop clips gradients that are still accumulated."""
    tests = ((loop, _test(facts, loops, loop)) for loop in program.training)
    return any(test is not None and _clips_before(facts, loop, test) for loop, test in tests)


def _clips_before(facts: Facts, loop: LoopFact, test: ast.If) -> bool:
    ends = {id(inner) for inner in ast.walk(test)}
    calls = (n for n in ast.walk(loop.node) if isinstance(n, ast.Call) and id(n) not in ends)
    return any(facts.called(call) & CLIPPING.keys() for call in calls)


def _test(facts: Facts, loops: Loops, loop: LoopFact) -> ast.If | None:
    """The `if (i + 1) % k == 0:` around the step of a loop, with a backward outside of it."""
    tree = facts.tree(loop.node)
    steps = [update.node for update in loops.stepped(loop) if update.node in tree]
    for step in steps:
        for above in tree.up(step):
            if above is loop.node or (isinstance(above, LOOPS) and loops.trains(above)):
                break  # a loop in between takes steps of its own
            if isinstance(above, ast.If) and any(isinstance(inner, ast.Mod) for inner in ast.walk(above.test)):
                if not _is_round_of_its_own(above, loop.backwards, steps):
                    return above
    return None


def _is_round_of_its_own(test: ast.If, backwards: Iterable[ast.AST], steps: Iterable[ast.AST]) -> bool:
    """`if step % 4 == 0:` train; `if (i + 1) % n_critic == 0:` train the generator, beside the critic's own steps."""
    inside = set(ast.walk(test))
    within = [backward in inside for backward in backwards]
    return all(within) or (any(within) and not inside.issuperset(steps))


class _Reader:
    """Reads one loop; what does not fit is an exception."""

    def __init__(self, facts: Facts, loops: Loops, program: Program, loop: LoopFact, test: ast.If | None) -> None:
        self._facts = facts
        self._loops = loops
        self._program = program
        self._loop = loop
        self._test = test

    def read(self) -> tuple[Window, ast.expr]:
        """The window, and the number of its micro-steps."""
        loop, test = self._loop.node, self._test
        if test is None:
            raise Stays(loop, "another loop of the program does not accumulate")
        if not isinstance(loop, ast.For) or test not in loop.body or test.orelse:
            raise Stays(test, "the window does not end at the level of the loop")
        steps = self._steps(loop, test)
        self._check_ways(loop)
        self._check_updates(loop, test)
        backward = self._backward(loop, test)
        first, models = self._micro_step(loop, test)
        divided = division(self._facts, loop, backward, steps)
        self._check_value(steps)
        is_read = self._is_counter_read(loop, test)
        return Window(self._loop, test, first, models, divided, self._is_plain(test), is_read), steps

    # --- the test ---------------------------------------------------------------------------------------------------

    def _steps(self, loop: ast.For, test: ast.If) -> ast.expr:
        """The k of `(i + 1) % k == 0 or i + 1 == len(loader)`."""
        counter = self._counter(loop)
        parts = test.test.values if isinstance(test.test, ast.BoolOp) and isinstance(test.test.op, ast.Or) else []
        if not parts:
            raise Stays(test, "the last window of an epoch is left open, and its gradients go into the next one")
        windows = [k for part in parts if (k := _modulo(part, counter)) is not None]
        ends = [part for part in parts if self._is_last(part, counter, loop)]
        if len(parts) != 2 or len(windows) != 1 or len(ends) != 1:
            raise Stays(test, "the windows are counted in another way than `(i + 1) % k == 0 or i + 1 == len(loader)`")
        return windows[0]

    def _counter(self, loop: ast.For) -> str:
        """The i of `for i, batch in enumerate(loader)`."""
        target = loop.target.elts[0] if isinstance(loop.target, ast.Tuple) and loop.target.elts else None
        call = loop.iter
        while isinstance(call, ast.Call) and "builtins.enumerate" not in self._facts.called(call) and call.args:
            call = call.args[0]  # a bar around it
        is_counted = isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords
        if not isinstance(target, ast.Name) or not is_counted or not self._loop.loaders:
            raise Stays(loop, "the batches are not counted by enumerate()")
        if any(target.id == n.id for s in loop.body for n in ast.walk(s) if _is_stored(n)):
            raise Stays(loop, f"{target.id} is given other values in the loop")
        return target.id

    def _is_counter_read(self, loop: ast.For, test: ast.If) -> bool:
        """Whether something beside the test of the window reads the number of the batch."""
        counter = self._counter(loop)
        own = {id(inner) for inner in ast.walk(test.test)}
        around = ast.walk(self._facts.tree(loop).function(loop))
        return any(
            isinstance(n, ast.Name) and n.id == counter and not _is_stored(n) and id(n) not in own for n in around
        )

    def _is_last(self, node: ast.expr, counter: str, loop: ast.For) -> bool:
        """`i + 1 == len(loader)`, `i == len(loader) - 1`."""
        if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
            return False
        for one, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
            if _is_next(one, counter) and self._is_length(other, loop):
                return True
            is_name = isinstance(one, ast.Name) and one.id == counter
            if is_name and isinstance(other, ast.BinOp) and isinstance(other.op, ast.Sub):
                if _is_one(other.right) and self._is_length(other.left, loop):
                    return True
        return False

    def _is_length(self, node: ast.expr, loop: ast.For) -> bool:
        if not isinstance(node, ast.Call) or "builtins.len" not in self._facts.called(node) or len(node.args) != 1:
            return False
        made = self._facts.loaders(self._facts.values(node.args[0]))
        return bool(made) and made == set(self._loop.loaders)

    # --- the body ---------------------------------------------------------------------------------------------------

    def _check_ways(self, loop: ast.For) -> None:
        """Every batch is a micro-step: no way past the count, and none out of the loop."""
        for inner in ast.walk(loop):
            if isinstance(inner, (ast.Continue, ast.Break, ast.Return)) and self._belongs(inner, loop):
                raise Stays(inner, f"`{type(inner).__name__.lower()}` leaves a window open")

    def _belongs(self, node: ast.AST, loop: ast.For) -> bool:
        """Whether a way out is that of this loop, not of one inside of it."""
        return isinstance(node, ast.Return) or next(self._facts.tree(node).loops(node), None) is loop

    def _check_updates(self, loop: ast.For, test: ast.If) -> None:
        inside = {id(inner) for statement in test.body for inner in ast.walk(statement)}
        for update in self._loops.stepped(self._loop):
            if id(update.node) not in inside:
                raise Stays(update.node, "a step is made outside of the window")
        for use in self._facts.method_calls("zero_grad"):
            if any(use.node is inner for inner in ast.walk(loop)) and id(use.node) not in inside:
                raise Stays(use.node, "gradients are cleared outside of the window")
        cleared = [use.node for use in self._facts.method_calls("zero_grad") if id(use.node) in inside]
        if not cleared:
            raise Stays(test, "gradients are not cleared in the window")

    def _backward(self, loop: ast.For, test: ast.If) -> ast.Call:
        """The only backward of a micro-step."""
        calls = self._loop.backwards
        tree = self._facts.tree(loop)
        if len(calls) != 1 or calls[0] not in tree or not any(calls[0] is inner for inner in ast.walk(loop)):
            raise Stays(loop, "a micro-step has several calls of backward, or makes them in a function")
        held = tree.in_block(calls[0], loop.body)
        if held is None or not isinstance(held, (ast.Expr, ast.With)) or held.lineno > test.lineno:
            raise Stays(calls[0], "backward is not called in every micro-step, before the window ends")
        return calls[0]

    def _micro_step(self, loop: ast.For, test: ast.If) -> tuple[ast.stmt, tuple[str, ...]]:
        """The first statement that calls a model, and the models by their names."""
        first: ast.stmt | None = None
        names: dict[str, None] = {}
        made: set[ast.AST] = set()
        for statement in loop.body[: loop.body.index(test)]:
            for inner in ast.walk(statement):
                mine = self._called_models(inner)
                if mine:
                    assert isinstance(inner, ast.Call)
                    first = first or statement
                    names[ast.unparse(inner.func)] = None
                    made |= mine
        trained: set[ast.AST] = set()
        for origin in self._loops.trained_by(self._loop):
            trained |= self._facts.models_of.get(origin, set()) & self._program.model_origins
        if first is None or made != trained or any(not name.replace(".", "").isidentifier() for name in names):
            raise Stays(loop, "the models that a micro-step calls are not those that are trained")
        return first, tuple(names)

    def _called_models(self, node: ast.AST) -> set[ast.AST]:
        if not isinstance(node, ast.Call):
            return set()
        return origins(self._facts.values(node.func), Role.MODEL) & self._program.model_origins

    def _is_plain(self, test: ast.If) -> bool:
        return all(self._is_part(statement) for statement in test.body)

    def _is_part(self, statement: ast.stmt) -> bool:
        """Clipping, a step of an optimizer, clearing its gradients, and what a scaler does around it."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call):
            return False
        if self._facts.called(call) & CLIPPING.keys():
            return True
        receiver = self._facts.receiver(call)
        method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if origins(receiver, Role.OPTIMIZER):
            return method in ("step", "zero_grad")
        return bool(origins(receiver, Role.SCALER)) and method in ("step", "update", "unscale_")

    # --- the number -------------------------------------------------------------------------------------------------

    def _check_value(self, steps: ast.expr) -> None:
        """The number means the same where the accelerator is made."""
        if isinstance(steps, ast.Constant):
            return
        root: ast.expr = steps
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name):
            raise Stays(steps, f"{ast.unparse(steps)} is not a number with a name")
        home, unit = self._program.home, self._loop.unit
        given = [b for b in self._facts.bindings if b.target == ast.unparse(steps)]
        if len(given) > 1 or any(True for b in given for _ in self._facts.tree(b.statement).loops(b.statement)):
            raise Stays(given[0].statement, f"{ast.unparse(steps)} changes")
        if unit is home:
            return
        assert home is not None
        module = module_of(home)
        named = [b for b in self._facts.bindings if b.target == root.id and module_of(b.unit) is module]
        is_global = bool(named) and all(b.unit is module for b in named)
        if module_of(unit) is module and is_global and root.id not in (*_parameters(unit), *_parameters(home)):
            return
        there = {v.origin for b in self._facts.bindings_in(home) if b.target == root.id for v in b.values}
        there |= {v.origin for v in getattr(home, "parameters", {}).get(root.id, ())}
        here = {v.origin for v in self._facts.values(root)}
        if not here or len(here) > 1 or here != there:
            raise Stays(steps, f"{ast.unparse(steps)} is not at hand where the accelerator is made")


def _modulo(node: ast.expr, counter: str) -> ast.expr | None:
    """The k of `(i + 1) % k == 0`."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
        return None
    left, right = node.left, node.comparators[0]
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and _is_next(left.left, counter):
        return left.right if isinstance(right, ast.Constant) and right.value == 0 else None
    return None


def _is_next(node: ast.expr, counter: str) -> bool:
    """`i + 1`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return False
    sides = (node.left, node.right)
    return any(isinstance(s, ast.Name) and s.id == counter for s in sides) and any(map(_is_one, sides))


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _is_stored(node: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


def _parameters(unit: Unit) -> Collection[str]:
    return unit.parameter_names if isinstance(unit, Function) else ()
