"""Batches that are on the CPU because their loader is not prepared, or not yet: `images, _ = next(iter(loader))`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import arguments, last_line, line_of, walk
from migrate.analysis.units import Function
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion

_DEEPEST = 6  # names and parameters between a batch and where it is shown
_BEGINNING = frozenset({"builtins.iter", "builtins.enumerate"})
_TAKING = frozenset({"builtins.next"})
_OF_TENSORS = ("torch.", "torchvision.utils.")
#: Methods that bring a tensor elsewhere.
_MOVES = frozenset({"to", "cuda"})


class RawBatches:
    """The answers for one program."""

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion
        self._facts = conversion.facts
        self._sources = conversion.facts.once(Sources)

    def holds(self, node: ast.expr, depth: int = _DEEPEST) -> bool:
        """Whether an expression goes back to nothing but such batches, and to numbers beside them."""
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            return self.holds(node.value, depth)
        if isinstance(node, ast.BinOp):
            return self.holds(node.left, depth) and self.holds(node.right, depth)
        if isinstance(node, ast.Call):
            return self._is_of(node, depth)
        return isinstance(node, ast.Constant) or (isinstance(node, ast.Name) and self._is_named(node, depth))

    def _is_of(self, call: ast.Call, depth: int) -> bool:
        """`next(batches)`, `make_grid(images)`, `images.view(-1)`."""
        names = self._facts.called(call)
        if names & _TAKING and call.args:
            return self._is_begun_raw(call.args[0])
        if names:
            given = arguments(call)
            is_pure = all(name.startswith(_OF_TENSORS) for name in names)
            return is_pure and bool(given) and all(self.holds(each, depth) for each in given)
        is_method = isinstance(call.func, ast.Attribute) and not self._facts.targets(call)
        return is_method and call.func.attr not in _MOVES and self.holds(call.func.value, depth)  # type: ignore[attr-defined]

    def _is_named(self, name: ast.Name, depth: int) -> bool:
        given = self._given(name) if depth else None
        return given is not None and all(self.holds(each, depth - 1) for each in given)

    def _given(self, name: ast.Name) -> list[ast.expr] | None:
        """What a name may have at a place: of the statements above, up to one that comes before it in any case."""
        tree, unit = self._facts.tree(name), self._facts.unit(name)
        bindings = [binding for binding in self._facts.bindings_in(unit) if binding.target == name.id]
        again = {inner for loop in tree.loops(name) for inner in walk(loop)}
        if any(b.statement in again and b.statement.lineno >= name.lineno for b in bindings):
            return None  # by the next round it is something else
        blocks = [tree.block(above) for above in tree.up(name) if isinstance(above, ast.stmt)]
        found: list[ast.expr] = []
        above = (b.statement for b in bindings if last_line(b.statement) < name.lineno)
        for statement in sorted(above, key=line_of, reverse=True):
            if not isinstance(statement, ast.Assign):
                return None
            found.append(statement.value)
            if any(tree.block(statement) is block for block in blocks):
                return found
        if not isinstance(unit, Function) or name.id not in unit.parameter_names:
            return None
        given = self._sources.argument(unit, name.id)
        return [*found, *given.expressions] if given.complete and given.expressions else None

    def _is_begun_raw(self, batches: ast.expr) -> bool:
        """Whether a pass was begun over a loader that is not prepared there."""
        if isinstance(batches, ast.Name):
            given = self._given(batches)
            return given is not None and all(isinstance(e, ast.Call) and self._is_begun_raw(e) for e in given)
        if not isinstance(batches, ast.Call) or not self._facts.called(batches) & _BEGINNING or not batches.args:
            return False
        made = set(self._facts.loaders(self._facts.values(batches.args[0])))
        placed = made & self._conversion.placed_origins
        return bool(made) and not (placed and self._conversion.is_prepared_at(batches, placed))
