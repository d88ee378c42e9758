"""The numbers of a place: what a rank, or the number of processes, is known by in the text of a program.

Beside what `programs/values/place.py` follows, attributes of any object are known by their name (`args.rank`), and
parameters by what every call hands over for them.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.programs.values.place import Places, Quantity, number, remainder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module
    from migrate.programs.values.sources import Sources

RANKS = frozenset({Quantity.RANK, Quantity.LOCAL_RANK})
SIZES = frozenset({Quantity.WORLD_SIZE, Quantity.DEVICES})
_DEEPEST = 3  # calls that hand a number over


class Quantities:
    """The quantities in the modules of one project."""

    def __init__(self, facts: Facts, modules: tuple[Module, ...], places: Places, sources: Sources) -> None:
        self._facts = facts
        self._modules = modules
        self._places = places
        self._sources = sources

    def of(self, node: ast.expr, depth: int = _DEEPEST) -> Quantity | None:
        """Which number of the place an expression is."""
        if isinstance(node, (ast.Name, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            return None
        if (parts := remainder(node)) is not None and self.of(parts[0], depth) in RANKS:
            return Quantity.LOCAL_RANK
        if (found := self._places.quantity(node)) is not None:
            return found
        if isinstance(node, ast.Attribute):
            return self.of_attributes.get(node.attr)
        return self._handed(node, depth) if isinstance(node, ast.Name) and depth else None

    def _handed(self, node: ast.Name, depth: int) -> Quantity | None:
        """What a parameter is, of which every call hands the same over."""
        given = self._sources.given(node)
        kinds = {self.of(each, depth - 1) for each in given.expressions} if given.complete else set()
        if len(kinds) > 1 and kinds <= SIZES:
            return Quantity.WORLD_SIZE
        return kinds.pop() if len(kinds) == 1 else None

    @cached_property
    def of_attributes(self) -> dict[str, Quantity]:
        """`args.rank`: attributes that are given a number of the place wherever they are given anything."""
        given: dict[str, list[ast.expr | None]] = {}
        for target, value in self.assigned_attributes():
            given.setdefault(target.attr, []).append(value)
        found: dict[str, Quantity] = {}
        for attribute, values in given.items():
            is_added = attribute in self._added
            kinds = {self._given(v, attribute) for v in values if not (is_added and self._is_first_rank(v))}
            kinds |= {Quantity.RANK} if is_added else set()
            if len(kinds - {"alone"}) == 1 and isinstance(kind := next(iter(kinds - {"alone"})), Quantity):
                found[attribute] = kind
        return found

    @cached_property
    def _added(self) -> frozenset[str]:
        """`args.rank += gpu`: attributes in which the first rank of a machine becomes that of the process."""
        return frozenset(
            node.target.attr
            for module in self._modules
            for node in self._facts.tree(module.tree).nodes
            if isinstance(node, ast.AugAssign)
            and isinstance(node.op, ast.Add)
            and isinstance(node.target, ast.Attribute)
            and self._places.quantity(node.value) in RANKS
        )

    def _is_first_rank(self, value: ast.expr | None) -> bool:
        """`int(os.environ["NODE"]) * gpus_per_node`: the rank of the first process of a machine."""
        sides = (value.left, value.right) if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) else ()
        return any(self._places.quantity(side) in SIZES for side in sides)

    def _given(self, value: ast.expr | None, attribute: str) -> Quantity | str | None:
        """What one assignment gives: a quantity, what says "alone", or something else."""
        if value is None:
            return None
        if number(value) in (0, 1, -1) or (isinstance(value, ast.Constant) and value.value is None):
            return "alone"
        if isinstance(value, ast.BinOp):
            if isinstance(value.op, ast.Mod):
                left = value.left
                is_own = isinstance(left, ast.Attribute) and "rank" in left.attr
                return Quantity.LOCAL_RANK if is_own or self._places.quantity(left) in RANKS else None
            sides = (value.left, value.right)
            if any(isinstance(n, ast.Attribute) and n.attr == attribute for s in sides for n in ast.walk(s)):
                return "alone"  # args.rank * n + gpu: made out of what it was
        found = self._places.quantity(value)
        return found if found is not Quantity.DEVICES else Quantity.WORLD_SIZE

    def assigned_attributes(self) -> Iterator[tuple[ast.Attribute, ast.expr | None]]:
        """Every attribute that is given something, and what, where that is one expression."""
        for module in self._modules:
            for node in self._facts.tree(module.tree).nodes:
                if not isinstance(node, ast.Assign):
                    continue
                for target in node.targets:
                    if isinstance(target, ast.Attribute):
                        yield target, node.value
                    elif isinstance(target, ast.Tuple):
                        values: list[ast.expr | None] = [None] * len(target.elts)
                        if isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(target.elts):
                            values = [*node.value.elts]
                        for element, value in zip(target.elts, values, strict=True):
                            if isinstance(element, ast.Attribute):
                                yield element, value
