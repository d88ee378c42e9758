"""The loops of a program: which train, which evaluate.

A training loop is the innermost loop around a vanilla `backward`, in the function that calls it or, where that has no
loop, in its callers. An evaluation loop runs over a loader and reaches no backward. Everything else is neither.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known import amp
from migrate.analysis.known.training import AUTOGRAD_BACKWARD, RUN_ELSEWHERE
from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import Loop, walk
from migrate.analysis.units import Class, Function, Unit
from migrate.programs.reach.idle import idle
from migrate.programs.reach.unmade import made
from migrate.programs.shares.averages import Averages, Averaging
from migrate.programs.shares.balances import balances
from migrate.programs.shares.ground import Ground
from migrate.programs.shares.joinable import joinable
from migrate.programs.shares.joins import Join, joins
from migrate.programs.shares.left_over import averages, decisions
from migrate.programs.training.entries import Entries
from migrate.programs.training.gradients_off import goes_on_with_gradients, without_gradients
from migrate.programs.training.in_step import in_step
from migrate.programs.training.updates import How, Updates
from migrate.programs.values.frameworks import Frameworks, gives_something, is_library_object
from migrate.programs.values.going_on import beside, joined_last, meters_last
from migrate.programs.values.takes import goes_on_with, hands_on, nexts, taken, taken_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.programs.shares.balances import Balance
    from migrate.programs.training.updates import Update
    from migrate.programs.values.accumulators import Accumulator

#: A receiver of these roles has a `backward` of its own meaning.
_NOT_A_LOSS = frozenset({Role.ACCELERATOR, Role.MODEL, Role.OPTIMIZER, Role.INSTANCE, Role.CLASS, Role.MODULE})


class Kind(str, Enum):
    """What a loop does."""

    TRAINING = "training"
    EVALUATION = "evaluation"


@dataclass(frozen=True, eq=False, slots=True)
class LoopFact:
    """A loop with what it runs over and the backward calls it reaches."""

    node: Loop
    unit: Unit
    kind: Kind
    loaders: frozenset[ast.AST]
    backwards: tuple[ast.Call, ...] = ()
    whole: frozenset[ast.AST] = frozenset()  # the loaders of which every process gets whole batches (in_step.py)


class Loops:
    """The loops of the named files."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._frameworks = Frameworks(facts)
        self.updates = Updates(facts)
        self._entries = Entries(facts)
        self._stepped: dict[Loop, tuple[Update, ...]] = {}
        self._accumulated: dict[Loop, tuple[Accumulator, ...]] = {}
        self._joined: dict[Loop, tuple[Join, ...]] = {}
        self._averaged: dict[Loop, Averages] = {}
        self._decides: dict[Loop, Ground | None] = {}  # where it was looked for, if something was found

    @cached_property
    def backwards(self) -> tuple[Use, ...]:
        """Calls of `backward` on a loss, and of `torch.autograd.backward`, in what has to do with PyTorch."""
        uses = (use for use in self._facts.calls_anywhere if self._is_vanilla(use))
        return tuple(use for use in uses if self._is_called_with_torch(use.unit, set()))

    def _is_called_with_torch(self, unit: Unit, seen: set[Unit]) -> bool:
        """Whether the file of a unit has to do with PyTorch, or one that calls it."""
        if self._frameworks.uses_torch(unit.module):
            return True
        callers = self._facts.callers(unit) if isinstance(unit, Function) and unit not in seen else ()
        seen.add(unit)
        return any(self._is_called_with_torch(call.caller, seen) for call in callers)

    def _is_vanilla(self, use: Use) -> bool:
        facts, call = self._facts, use.node
        if facts.called(call) & AUTOGRAD_BACKWARD or is_scaling(facts, call):
            return True
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "backward" or facts.targets(call):
            return False
        receiver = facts.receiver(call)
        if roles(receiver) & _NOT_A_LOSS or facts.names(call.func.value) or gives_something(facts.tree(call), call):
            return False
        if call.args and all(is_library_object(value) for value in receiver):  # fabric.backward(loss)
            return False
        if isinstance(call.func.value, ast.Name) and call.func.value.id in ("self", "ctx"):
            return False
        return not self._is_handled_elsewhere(use.unit) and not self._frameworks.is_foreign(call.func.value)

    def _is_handled_elsewhere(self, unit: Unit) -> bool:
        """Inside a class for which a framework or autograd runs the loop."""
        while isinstance(unit, Function):
            owner = unit.owner
            if isinstance(owner, Class) and any(base.endswith(RUN_ELSEWHERE) for base in owner.library_bases()):
                return True
            if unit.parent is None:
                return False
            unit = unit.parent
        return False

    @cached_property
    def idle(self) -> tuple[LoopFact, ...]:
        """Training loops that nothing runs, beside others that train the same objects."""
        return tuple(idle(self._facts, self, self._reaching))

    @cached_property
    def training(self) -> tuple[LoopFact, ...]:
        """The training loops, in source order, but for those that nothing runs."""
        return tuple(loop for loop in self._reaching if loop not in self.idle)

    @cached_property
    def _reaching(self) -> tuple[LoopFact, ...]:
        """The loops that reach a backward."""
        reached: dict[Loop, list[ast.Call]] = {}
        for use in self.backwards:
            for loop in self.innermost(use.node, use.unit):
                if self._facts.file(loop).named:
                    reached.setdefault(loop, []).append(use.node)
        taken_by = {loop: self._run_over(loop) for loop in reached}
        whole = in_step(self._facts, taken_by)
        return tuple(self._as_training(loop, tuple(calls), taken_by[loop][1], whole) for loop, calls in reached.items())

    def _as_training(
        self, loop: Loop, calls: tuple[ast.Call, ...], found: frozenset[ast.AST], whole: set[ast.AST]
    ) -> LoopFact:
        found = frozenset(made(self._facts, found))
        return LoopFact(loop, self._facts.unit(loop), Kind.TRAINING, found - whole, calls, found & whole)

    @cached_property
    def out_of_sight(self) -> tuple[Use, ...]:
        """Backward calls in functions that also step an optimizer, and that no loop in sight calls."""
        return tuple(
            use
            for use in self.backwards
            if isinstance(use.unit, Function)
            and use.unit.module.file.named
            and not any(True for _ in self.innermost(use.node, use.unit))
            and bool(self.updates.reached(use.unit.node))
        )

    @cached_property
    def unnamed(self) -> tuple[tuple[Loop, ast.Call], ...]:
        """Training loops in files that were not named, each with a call in a named file that leads there."""
        found: dict[Loop, ast.Call] = {}
        for use in self.backwards:
            for loop in self.innermost(use.node, use.unit):
                call = None if self._facts.file(loop).named else self._named_call(self._facts.unit(loop), set())
                if call is not None:
                    found.setdefault(loop, call)
        return tuple(found.items())

    def as_training(self, loop: Loop) -> LoopFact:
        """A loop as the training loop that it is, wherever it stands."""
        calls = tuple(use.node for use in self.backwards if loop in self.innermost(use.node, use.unit))
        taken_by = self._run_over(loop)
        return self._as_training(loop, calls, taken_by[1], in_step(self._facts, {loop: taken_by}))

    def _named_call(self, unit: Unit, seen: set[Unit]) -> ast.Call | None:
        callers = self._facts.callers(unit) if isinstance(unit, Function) and unit not in seen else ()
        seen.add(unit)
        for call in callers:
            if call.caller.module.file.named:
                return call.node
            if (above := self._named_call(call.caller, seen)) is not None:
                return above
        return None

    def innermost(self, node: ast.AST, unit: Unit, seen: set[Unit] | None = None) -> Iterator[Loop]:
        """The innermost loops around a node: its own function's, else those of the callers."""
        seen = set() if seen is None else seen  # that were gone through, on whatever way
        own = next(self._facts.tree(node).loops(node), None)
        if own is not None:
            yield own
        elif isinstance(unit, Function) and unit not in seen:
            seen.add(unit)
            for entry, caller in self._entries.of(node, unit):
                yield from self.innermost(entry, caller, seen)

    def around(self, node: ast.AST, unit: Unit, seen: set[Unit] | None = None) -> Iterator[Loop]:
        """Every loop around a node, innermost first, those around the callers included."""
        seen = set() if seen is None else seen
        yield from self._facts.tree(node).loops(node)
        if isinstance(unit, Function) and unit not in seen:
            seen.add(unit)
            for entry, caller in self._entries.of(node, unit):
                yield from self.around(entry, caller, seen)

    def taking(self, loop: Loop) -> Loop:
        """The loop that takes the batches: a training loop, or one around it where that goes through their parts."""
        return self._run_over(loop)[0]

    def _run_over(self, loop: Loop) -> tuple[Loop, frozenset[ast.AST]]:
        """The loop that takes what a training loop trains on, itself or one around it; where the loaders were made."""
        for each in (around := (loop, *self.around(loop, self._facts.unit(loop)))):
            if found := self.loaders(each):
                return each, frozenset(found | self._beside(loop))
        fetched = ((each, frozenset(self.fetched(each))) for each in around)
        own = ((each, found) for each, found in fetched if each is loop or goes_on_with(self._facts, loop, found))
        return next((each for each in own if each[1]), (loop, frozenset()))

    def loaders(self, loop: Loop) -> set[ast.AST]:
        """Where the loaders that a loop itself runs over were made."""
        if isinstance(loop, ast.While):
            return {o for n in walk(loop).of(ast.Call) for o in taken(self._facts, n)}
        return self._facts.loaders(self._facts.values(loop.iter))

    def fetched(self, loop: Loop) -> set[ast.AST]:
        """Where the loaders were made whose batches a loop takes one by one, with `next()`, to train on them."""
        trained = self._trained(loop)
        always = {o for node, found in trained.items() if not self._is_conditional(node, loop) for o in found}
        return always or {origin for found in trained.values() for origin in found}

    def _trained(self, loop: Loop) -> dict[ast.Call, set[ast.AST]]:
        """The calls that take one batch to train on it."""
        return {
            n: found
            for n, found in self.takes(loop).items()
            if not self._is_evaluated(n) and not self._is_kept(n, found, loop)
        }

    def _beside(self, loop: Loop) -> set[ast.AST]:
        """Where the loaders were made of which steps take a batch beside those that their loop runs over.

        Each step does, or some do and train on it: `if step % 4 == 0: loss = loss + penalty(next(batches))`.
        """
        found = self._trained(loop)
        at_times = {node for node in found if self._is_conditional(node, loop)}
        lost = self._lost(loop) if at_times else set()
        return {o for node, made_at in found.items() for o in made_at if o in lost or node not in at_times}

    def _lost(self, loop: Loop) -> set[ast.AST | None]:
        """Where the loaders were made of whose batches a loss is made, of which a loop calls backward."""
        calls = (use.node for use in self.backwards if loop in self.innermost(use.node, use.unit))
        losses = (part for call in calls for part in walk(call) if isinstance(part, ast.expr))
        return {value.origin for loss in losses for value in self._facts.values(loss) if value.role in FROM_LOADER}

    def takes(self, loop: Loop) -> dict[ast.Call, set[ast.AST]]:
        """The calls that take one batch, in a loop and the functions that it enters, with where loaders were made."""
        entered = self._entered(loop)
        calls = (node for root in entered for node in walk(root) if isinstance(node, ast.Call))
        return {call: found for call in calls if (found := taken_for(self._facts, call, entered))}

    def _entered(self, loop: Loop) -> list[ast.AST]:
        """A loop and the functions that it enters, also by `next(batches)` of an object of the project."""
        found: dict[ast.AST, None] = {}
        waiting: list[ast.AST] = [loop]
        while waiting:
            root = waiting.pop()
            if root not in found:
                found[root] = None
                waiting += [unit.node for unit in self.updates.functions(root)]
                waiting += [unit.node for node in walk(root) for unit in nexts(self._facts, node)]
        return list(found)

    def _is_evaluated(self, node: ast.AST) -> bool:
        """Whether gradients are off where a batch is taken, and where it is read."""
        return without_gradients(self._facts, node) and not goes_on_with_gradients(self._facts, node)

    def _is_kept(self, call: ast.Call, loaders: set[ast.AST], loop: Loop) -> bool:
        """Whether a function that does not train runs a model on what it takes, and gives a number away at most."""
        unit = self._facts.unit(call).original
        if unit is self._facts.unit(loop).original or unit in self._training_functions:
            return False
        given = [v for v in (*unit.returns, *unit.yields) if v.origin in loaders] if isinstance(unit, Function) else ()
        is_kept = all(v.role is Role.STATISTIC for v in given) and any(map(self.calls_model, self._facts.own(unit)))
        return is_kept and not (given and (self._lost(loop) or loaders) & loaders)

    def _is_conditional(self, node: ast.AST, loop: Loop) -> bool:
        """Whether a batch is only taken at times: to look at, or to evaluate on."""
        for above in self._facts.tree(node).up(node):
            if above is loop:
                return False
            if isinstance(above, ast.If):
                return True
        return False

    @cached_property
    def evaluation(self) -> tuple[LoopFact, ...]:
        """Loops over a loader that reach no backward, in any file of the program."""
        found = []
        for node, unit in self._facts.loops:
            loaders = self.loaders(node) if not isinstance(node, ast.While) else ()
            if loaders and not self.trains(node) and not hands_on(node):
                found.append(LoopFact(node, unit, Kind.EVALUATION, frozenset(loaders)))
        return tuple(found)

    @cached_property
    def _training_calls(self) -> dict[ast.Call, Unit]:
        """Backward calls, and the calls that enter a function which reaches one: also through an object."""
        return self._entries.leading(self.backwards)

    @cached_property
    def _training_functions(self) -> frozenset[Unit]:
        """Functions that reach a backward call."""
        return frozenset(self._training_calls.values())

    def trains(self, node: ast.AST) -> bool:
        """Whether code reaches a backward call, itself or through the functions it calls."""
        return any(inner in self._training_calls for inner in walk(node))

    def calls_model(self, node: ast.AST) -> bool:
        """Whether code calls a model, or its `forward`."""
        called = (inner.func for inner in walk(node) if isinstance(inner, ast.Call))
        run = (f.value if isinstance(f, ast.Attribute) and f.attr == "forward" else f for f in called)
        return any(Role.MODEL in roles(self._facts.values(each)) for each in run)

    def accumulated(self, loop: LoopFact) -> tuple[Accumulator, ...]:
        """What a training loop adds up or collects."""
        return tuple(joined_last(self._facts, loop, beside(self.training, loop), self._added))

    def _added(self, loop: LoopFact) -> tuple[Accumulator, ...]:
        if loop.node not in self._accumulated:
            self._accumulated[loop.node] = tuple(joinable(self._facts, loop, self.taking(loop.node)))
        return self._accumulated[loop.node]

    def joined(self, loop: LoopFact) -> tuple[Join, ...]:
        """The meters that are joined after a training loop."""
        return tuple(meters_last(self._facts, loop, beside(self.training, loop), self._fed))

    def _fed(self, loop: LoopFact) -> tuple[Join, ...]:
        if loop.node not in self._joined:
            self._joined[loop.node] = tuple(joins(self._facts, loop))
        return self._joined[loop.node]

    def averaged(self, loop: LoopFact) -> Averages:
        """What of a training loop's own numbers decides, and is joined for that."""
        if loop.node not in self._averaged:
            found = Averages()
            if self.decides(loop):
                ground = self._decides[loop.node]
                assert ground is not None
                found = averages(ground, loop, self.accumulated(loop), self.joined(loop))
            balanced = [balance for balance in self.balances(loop) if balance.edits]
            known = {edit.at for edit in found.edits}
            weighing = (edit for balance in balanced for edit in balance.edits or () if edit.at not in known)
            more = Averages(tuple(weighing), frozenset(balance.name for balance in balanced))
            self._averaged[loop.node] = found | more
        return self._averaged[loop.node]

    def decides(self, loop: LoopFact) -> bool:
        """Whether something is decided by one process's own after a training loop, as long as nothing is joined."""
        if loop.node not in self._decides:
            ground = Ground(self._facts, self)
            found = decisions(ground, loop, self.accumulated(loop), self.joined(loop))
            self._decides[loop.node] = ground if any(True for _ in found) else None
        return self._decides[loop.node] is not None

    def balances(self, loop: LoopFact, *, draws: bool = False) -> tuple[Balance, ...]:
        """What a step of a training loop leaves for the next one, and a loss goes by."""
        averaging = Averaging(Ground(self._facts, self), loop)
        steps = any(update.how is How.OPTIMIZER for update in self.updates.reached(loop.node))
        return tuple(balances(self._facts, loop, averaging, draws=draws, steps=steps))

    def trained_by(self, loop: LoopFact) -> set[ast.AST]:
        """Where the optimizers were made that step in a training loop, functions it calls, or loops around it."""
        stepping = (update for update in self.stepped(loop) if update.how is How.OPTIMIZER)
        return made(self._facts, {origin for update in stepping for origin in update.optimizers})

    def together(self) -> list[list[LoopFact]]:
        """Training loops that share an optimizer or a loader belong together."""
        groups: list[tuple[set[ast.AST], list[LoopFact]]] = []
        for loop in self.training:
            mine = self.trained_by(loop) | set(loop.loaders | loop.whole)
            touching = [group for group in groups if group[0] & mine]
            merged = (mine.union(*(g[0] for g in touching)), [m for g in touching for m in g[1]] + [loop])
            groups = [group for group in groups if group not in touching] + [merged]
        return [group[1] for group in groups]

    def stepped(self, loop: LoopFact) -> tuple[Update, ...]:
        """What changes the parameters in a training loop, in the innermost loop around it that has such a thing."""
        if loop.node not in self._stepped:
            around = [self.updates.reached(node) for node in (loop.node, *self.around(loop.node, loop.unit))]
            proven = [found for found in around if any(update.how is How.OPTIMIZER for update in found)]
            self._stepped[loop.node] = next((found for found in (*proven, *around) if found), ())
        return self._stepped[loop.node]


def is_scaling(facts: Facts, call: ast.Call) -> bool:
    """`loss_scaler(loss, optimizer)`: a library's object that computes gradients and steps."""
    return any(value.role is Role.SCALER and value.name in amp.STEPS_WHEN_CALLED for value in facts.values(call.func))
