"""Tensors that a training loop makes anew of its batches, and what is computed from them.

    x = torch.tensor(x, dtype=torch.float32).to(device)
    loss = criterion(model(x), torch.from_numpy(y))

What is computed from a batch is known by the loader that it comes from. Such a tensor is an object of its own, as for
where it lies; but its rows are those of the process's own batch, and so is a loss that is computed from it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.table import Makes
from migrate.analysis.roles import ROWS, Role
from migrate.analysis.syntax import arguments, rounds, walk
from migrate.programs.values.below import below

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.programs.loops import LoopFact

_OF_DATA = frozenset({"torch.tensor", "torch.as_tensor", "torch.from_numpy"})


class MadeAnew:
    """The calls by which loops make tensors of their batches, found once for each loop."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._found: dict[LoopFact, frozenset[ast.AST]] = {}

    def gave(self, loop: LoopFact, values: Values) -> bool:
        """Whether something may be such a tensor; what a function of the project gives back tells of no call."""
        if loop not in self._found:
            self._found[loop] = self._made(loop)
        made = self._found[loop]
        return bool(made) and any(v.role is Role.TENSOR and (v.origin is None or v.origin in made) for v in values)

    def _made(self, loop: LoopFact) -> frozenset[ast.AST]:
        calls = [call for call in self._calls(loop) if self._gives_tensor(call)]
        found = {
            call for call in calls if self._copies(call) and any(self._holds_rows(loop, g) for g in arguments(call))
        }
        waiting = [call for call in calls if found and call not in found and not self._is_factory(call)]
        grown = bool(found)
        while grown:
            new = {call for call in waiting if any(self._is_of(found, part) for part in _parts(call))}
            waiting = [call for call in waiting if call not in new]
            found, grown = found | new, bool(new)
        return frozenset(found)

    def _calls(self, loop: LoopFact) -> Iterator[ast.Call]:
        yield from (node for node in rounds(loop.node) if isinstance(node, ast.Call))
        for unit in {each.unit for each in below(self._facts, loop.node)}:
            yield from (node for node in self._facts.own(unit) if isinstance(node, ast.Call))

    def _gives_tensor(self, call: ast.Call) -> bool:
        return any(value.role is Role.TENSOR and value.origin is call for value in self._facts.values(call))

    def _copies(self, call: ast.Call) -> bool:
        """Whether a call makes a tensor of what it is given: of the data, not of a size."""
        names = self._facts.called(call)
        is_old = any(name.endswith("Tensor") for name in names) and len(call.args) == 1 and self._is_factory(call)
        return is_old or bool(names & _OF_DATA)

    def _is_factory(self, call: ast.Call) -> bool:
        return any(isinstance(self._facts.row(name), Makes) for name in self._facts.called(call))

    def _holds_rows(self, loop: LoopFact, given: ast.expr) -> bool:
        while isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and not given.args:
            given = given.func.value  # `x.cpu().numpy()`
        return any(value.role in ROWS and value.origin in loop.loaders for value in self._facts.values(given))

    def _is_of(self, found: set[ast.Call], part: ast.expr) -> bool:
        values = (value for inner in walk(part).of(ast.expr) for value in self._facts.values(inner))
        return any(value.role is Role.TENSOR and value.origin in found for value in values)


def _parts(call: ast.Call) -> Iterator[ast.expr]:
    """What a call computes with: its arguments, and the object of a method."""
    yield from arguments(call)
    if isinstance(call.func, ast.Attribute):
        yield call.func.value
