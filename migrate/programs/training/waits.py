"""Where a loop over batches waits for the device in every step: what it computed is given to Python."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import FUNCTIONS, LOOPS, Loop
from migrate.analysis.units import Function, module_of
from migrate.options import Hardware
from migrate.programs.values.frameworks import Frameworks
from migrate.programs.values.scalars import Scalar, Scalars

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import LoopFact
    from migrate.programs.program import Program

_TENSORS = FROM_LOADER | {Role.TENSOR}
_READS = frozenset({"item", "tolist", "numpy", "cpu"})
#: Of what nobody knows, these are asked of tensors; what has a tolist or numpy of its own is often no tensor.
_OF_TENSORS = frozenset({"item", "cpu"})


def is_for_tpu(facts: Facts, program: Program, hardware: Hardware | None) -> bool:
    """Whether a program is meant for a TPU: it is said to be, or imports what PyTorch runs there with."""
    units = {loop.unit for loop in program.training} | ({program.home} if program.home is not None else set())
    return hardware is Hardware.TPU or any(Frameworks(facts).names_tpu(module_of(unit)) for unit in units)


class Waits:
    """The calls that wait, by the innermost of some loops that they are made in every step of."""

    def __init__(self, facts: Facts, loops: Iterable[LoopFact]) -> None:
        self._facts = facts
        self._facts_of = {loop.node: loop for loop in loops}

    def found(self) -> dict[LoopFact, list[ast.Call]]:
        """Every loop that waits, with its calls in source order, one of each line."""
        by_loop: dict[LoopFact, dict[tuple[str, int], ast.Call]] = {}
        for use in self._facts.calls_anywhere:
            if not self._may_read(use.node):
                continue
            loop = self._every_step(use.node, use.unit, set())
            if loop is not None and self._reads(use.node, self._facts_of[loop]):
                place = (self._facts.file(use.node).path, use.node.lineno)
                by_loop.setdefault(self._facts_of[loop], {}).setdefault(place, use.node)
        return {loop: [calls[place] for place in sorted(calls)] for loop, calls in by_loop.items()}

    def _may_read(self, call: ast.Call) -> bool:
        if isinstance(call.func, ast.Attribute):
            return call.func.attr in _READS and not call.args and not call.keywords
        return "builtins.float" in self._facts.called(call) and len(call.args) == 1

    def _reads(self, call: ast.Call, loop: LoopFact) -> bool:
        if not isinstance(call.func, ast.Attribute):
            return Scalars(self._facts, loop).kind(call.args[0]) is Scalar.TENSOR
        values = self._facts.values(call.func.value)
        if roles(values) <= {Role.UNKNOWN}:
            is_strange = any("." in value.name and not value.name.startswith("torch.") for value in values)
            return call.func.attr in _OF_TENSORS and not is_strange
        return bool(roles(values) & _TENSORS)

    def _every_step(self, node: ast.AST, unit: Unit, seen: set[Unit]) -> Loop | None:
        """The loop in every step of which a node runs, also where its function is called there."""
        below = node
        for above in self._facts.tree(node).up(node):
            if isinstance(above, ast.If) and below is not above.test and _is_rare(above.test, self._counter(above)):
                return None
            if isinstance(above, LOOPS) and above in self._facts_of and below in above.body:
                return above
            if isinstance(above, (*FUNCTIONS, ast.ClassDef)):
                break
            below = above
        if isinstance(unit, Function) and unit not in seen:
            seen.add(unit)
            for call in self._facts.callers(unit):
                if (loop := self._every_step(call.node, call.caller, seen)) is not None:
                    return loop
        return None

    def _counter(self, node: ast.AST) -> str:
        """What the loop around a node counts its batches by: `for i, batch in enumerate(...)`."""
        for loop in self._facts.tree(node).loops(node):
            if loop in self._facts_of and isinstance(loop, ast.For) and isinstance(loop.target, ast.Tuple):
                first = loop.target.elts[0]
                return first.id if isinstance(first, ast.Name) else ""
        return ""


def _is_rare(test: ast.expr, counter: str) -> bool:
    """Whether a condition holds in some steps only: `step % 100 == 0`, `i == 0`."""
    for node in ast.walk(test):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return True
        if isinstance(node, ast.Compare) and any(isinstance(operator, ast.Eq) for operator in node.ops):
            sides = (node.left, *node.comparators)
            if any(isinstance(n, ast.Name) and n.id == counter for side in sides for n in ast.walk(side)):
                return True
    return False
