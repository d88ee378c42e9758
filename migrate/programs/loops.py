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

from migrate.analysis.known.training import AUTOGRAD_BACKWARD, RUN_ELSEWHERE, TORCH_PACKAGES
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import Loop
from migrate.analysis.units import Class, Function, Module, Unit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts, Use

#: A receiver of these roles has a `backward` of its own meaning.
_NOT_A_LOSS = frozenset({Role.ACCELERATOR, Role.MODEL, Role.OPTIMIZER, Role.INSTANCE, Role.CLASS, Role.MODULE})


def _imports_torch(module: Module) -> bool:
    return any(
        (isinstance(node, ast.Import) and any(alias.name.split(".")[0] in TORCH_PACKAGES for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in TORCH_PACKAGES)
        for node in ast.walk(module.tree)
    )


def _home_of(unit: Module | Function | Class) -> Module:
    return unit if isinstance(unit, Module) else unit.module


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


class Loops:
    """The loops of the named files."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    @cached_property
    def backwards(self) -> tuple[Use, ...]:
        """Calls of `backward` on a loss, and of `torch.autograd.backward`, in files that have to do with PyTorch."""
        torch = {module for module in self._facts.modules if self._uses_torch(module)}
        return tuple(use for use in self._facts.calls_anywhere if use.unit.module in torch and self._is_vanilla(use))

    def _uses_torch(self, module: Module) -> bool:
        """Whether a file imports PyTorch, or a file of the project that does; other libraries have a backward, too."""
        return _imports_torch(module) or any(
            isinstance(value.unit, (Module, Function, Class)) and _imports_torch(_home_of(value.unit))
            for values in module.names.values()
            for value in values
        )

    def _is_vanilla(self, use: Use) -> bool:
        facts, call = self._facts, use.node
        if facts.called(call) & AUTOGRAD_BACKWARD:
            return True
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "backward" or facts.targets(call):
            return False
        receiver = facts.receiver(call)
        if roles(receiver) & _NOT_A_LOSS or facts.names(call.func.value):
            return False
        if not receiver and call.args:  # fabric.backward(loss), engine.backward(loss)
            return False
        if isinstance(call.func.value, ast.Name) and call.func.value.id in ("self", "ctx"):
            return False
        return not self._is_handled_elsewhere(use.unit)

    def _is_handled_elsewhere(self, unit: Unit) -> bool:
        """Inside a class for which a framework or autograd runs the loop."""
        while isinstance(unit, Function):
            if isinstance(unit.owner, Class):
                bases = unit.owner.library_bases()
                if any(base.endswith(RUN_ELSEWHERE) for base in bases):
                    return True
            if unit.parent is None:
                return False
            unit = unit.parent
        return False

    @cached_property
    def training(self) -> tuple[LoopFact, ...]:
        """The training loops, in source order."""
        reached: dict[Loop, list[ast.Call]] = {}
        for use in self.backwards:
            for loop in self.innermost(use.node, use.unit):
                if self._facts.file(loop).named:
                    reached.setdefault(loop, []).append(use.node)
        return tuple(
            LoopFact(loop, self._facts.unit(loop), Kind.TRAINING, frozenset(self._run_over(loop)), tuple(calls))
            for loop, calls in reached.items()
        )

    @cached_property
    def out_of_sight(self) -> tuple[Use, ...]:
        """Backward calls in functions that also step an optimizer, and that no loop in sight calls."""
        return tuple(
            use
            for use in self.backwards
            if isinstance(use.unit, Function)
            and use.unit.module.file.named
            and not any(True for _ in self.innermost(use.node, use.unit))
            and any(
                isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step"
                for node in self._facts.own(use.unit)
            )
        )

    @cached_property
    def unnamed(self) -> tuple[tuple[Loop, ast.Call], ...]:
        """Training loops in files that were not named, each with a call in a named file that leads there."""
        found: dict[Loop, ast.Call] = {}
        for use in self.backwards:
            for loop in self.innermost(use.node, use.unit):
                call = None if self._facts.file(loop).named else self._named_call(self._facts.unit(loop), frozenset())
                if call is not None:
                    found.setdefault(loop, call)
        return tuple(found.items())

    def _named_call(self, unit: Unit, seen: frozenset[int]) -> ast.Call | None:
        for call in self._facts.callers(unit) if isinstance(unit, Function) and id(unit) not in seen else ():
            if call.caller.module.file.named:
                return call.node
            if (above := self._named_call(call.caller, seen | {id(unit)})) is not None:
                return above
        return None

    def innermost(self, node: ast.AST, unit: Unit, seen: frozenset[int] = frozenset()) -> Iterator[Loop]:
        """The innermost loops around a node: its own function's, else those of the callers."""
        own = next(self._facts.tree(node).loops(node), None)
        if own is not None:
            yield own
        elif isinstance(unit, Function) and id(unit) not in seen:
            for call in self._facts.callers(unit):
                yield from self.innermost(call.node, call.caller, seen | {id(unit)})

    def around(self, node: ast.AST, unit: Unit, seen: frozenset[int] = frozenset()) -> Iterator[Loop]:
        """Every loop around a node, innermost first, those around the callers included."""
        yield from self._facts.tree(node).loops(node)
        if isinstance(unit, Function) and id(unit) not in seen:
            for call in self._facts.callers(unit):
                yield from self.around(call.node, call.caller, seen | {id(unit)})

    def _run_over(self, loop: Loop) -> set[ast.AST]:
        """Where the loaders were made whose batches a training loop sees: its own, else those of loops around it."""
        for around in (loop, *self.around(loop, self._facts.unit(loop))):
            found = self.loaders(around)
            if found:
                return found
        return set()

    def loaders(self, loop: Loop) -> set[ast.AST]:
        """Where the loaders that a loop itself runs over were made."""
        if isinstance(loop, ast.While):
            nexts = (n for n in ast.walk(loop) if isinstance(n, ast.Call) and "builtins.next" in self._facts.called(n))
            return {o for n in nexts if n.args for o in self._facts.loaders(self._facts.values(n.args[0]))}
        return self._facts.loaders(self._facts.values(loop.iter))

    @cached_property
    def evaluation(self) -> tuple[LoopFact, ...]:
        """Loops over a loader that reach no backward, in any file of the program."""
        found = []
        for node, unit in self._facts.loops:
            loaders = self.loaders(node) if not isinstance(node, ast.While) else ()
            if loaders and not self.trains(node):
                found.append(LoopFact(node, unit, Kind.EVALUATION, frozenset(loaders)))
        return tuple(found)

    @cached_property
    def _training_functions(self) -> set[Function]:
        """Functions that reach a backward call."""
        found: set[Function] = set()
        waiting = [use.unit for use in self.backwards if isinstance(use.unit, Function)]
        while waiting:
            unit = waiting.pop()
            if unit in found:
                continue
            found.add(unit)
            waiting.extend(call.caller for call in unit.calls.values() if isinstance(call.caller, Function))
        return found

    def trains(self, node: ast.AST) -> bool:
        """Whether code reaches a backward call, itself or through the functions it calls."""
        own = {id(use.node) for use in self.backwards}
        for inner in ast.walk(node):
            if id(inner) in own:
                return True
            if isinstance(inner, ast.Call) and any(t in self._training_functions for t in self._facts.targets(inner)):
                return True
        return False

    def calls_model(self, node: ast.AST) -> bool:
        """Whether code calls a model."""
        return any(
            isinstance(inner, ast.Call) and Role.MODEL in roles(self._facts.values(inner.func))
            for inner in ast.walk(node)
        )

    def trained_by(self, loop: LoopFact) -> set[ast.AST]:
        """Where the optimizers were made that step in a training loop, functions it calls, or loops around it."""
        for around in (loop.node, *self.around(loop.node, loop.unit)):
            found = self._steps(around, frozenset())
            if found:
                return found
        return set()

    def _steps(self, node: ast.AST, seen: frozenset[int]) -> set[ast.AST]:
        found: set[ast.AST] = set()
        for inner in ast.walk(node):
            if not isinstance(inner, ast.Call):
                continue
            if isinstance(inner.func, ast.Attribute) and inner.func.attr == "step":
                found |= origins(self._facts.receiver(inner), Role.OPTIMIZER)
                if Role.SCALER in roles(self._facts.receiver(inner)) and inner.args:
                    found |= origins(self._facts.values(inner.args[0]), Role.OPTIMIZER)
            for target in self._facts.targets(inner):
                if id(target) not in seen:
                    found |= self._steps(target.node, seen | {id(target)})
        return found
