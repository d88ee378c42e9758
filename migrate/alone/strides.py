"""Whether a class of samplers takes every n-th index from the r-th on, or the r-th of n pieces, and nothing else."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.quantities import RANKS
from migrate.analysis.syntax import same
from migrate.programs.values.place import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.world import World

#: What an object has of `DistributedSampler.__init__`.
_INHERITED = (frozenset({"num_replicas", "self.num_replicas"}), frozenset({"rank", "self.rank"}))
_INHERITED_SHARES = frozenset({"self.num_samples", "self.total_size"})
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)


class Strides:
    """What a class does with the number of processes, and with which of them it is on.

    Names and attributes are followed by their text, through the whole class.
    """

    def __init__(self, world: World, node: ast.ClassDef, sizes: set[str], ranks: set[str], *, is_derived: bool) -> None:
        self._world = world
        self._node = node
        self._is_derived = is_derived
        self._parents = {child: parent for parent in ast.walk(node) for child in ast.iter_child_nodes(parent)}
        inherited = _INHERITED if is_derived else (frozenset(), frozenset())
        self.sizes = self._named(sizes | inherited[0], frozenset({Quantity.WORLD_SIZE}))
        self.ranks = self._named(ranks | inherited[1], RANKS)

    def _named(self, first: set[str], kinds: frozenset[Quantity]) -> set[str]:
        """The names and attributes that hold a number of the place."""
        found = set(first)
        for target, value in self._assigned * 2:
            if ast.unparse(value) in found or self._world.quantity(value) in kinds:
                found.add(target)
        return found

    @cached_property
    def _assigned(self) -> list[tuple[str, ast.expr]]:
        """Every name and attribute that is given something, in the order of the source."""
        return [
            (ast.unparse(target), node.value)
            for node in ast.walk(self._node)
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        ]

    @cached_property
    def _shares(self) -> set[str]:
        """What counts one process's part, or all parts together: computed by a division by the number of processes."""
        given: dict[str, list[ast.expr]] = {}
        for target, value in self._assigned:
            given.setdefault(target, []).append(value)
        found = set(_INHERITED_SHARES - given.keys() if self._is_derived else ())
        for target, values in [*given.items()] * 2:
            if all(self._divides(value) or any(ast.unparse(n) in found for n in ast.walk(value)) for value in values):
                found.add(target)
        return found

    def _divides(self, value: ast.expr) -> bool:
        return any(
            isinstance(n, ast.BinOp) and isinstance(n.op, _DIVISIONS) and self._is_size(n.right)
            for n in ast.walk(value)
        )

    @property
    def deal(self) -> bool:
        """Whether the class deals out one order by strides or in pieces, in equal shares."""
        read = [n for n in ast.walk(self._node) if isinstance(n, (ast.Name, ast.Attribute, ast.Call))]
        ranks, sizes = (list(filter(told, read)) for told in (self._is_rank, self._is_size))
        if not all(map(self._is_harmless_rank, ranks)) or not all(map(self._is_harmless_size, sizes)):
            return False
        begins = any(self._is_start(node) or self._is_piece(node) for node in ranks)
        return self._is_counted and (begins or not self._orders)

    @property
    def _orders(self) -> bool:
        """Whether the class has an order of its own, and not only that of DistributedSampler."""
        return not self._is_derived or any(isinstance(s, ast.FunctionDef) and s.name == "__iter__" for s in self._body)

    @property
    def _body(self) -> list[ast.stmt]:
        return self._node.body

    @property
    def _is_counted(self) -> bool:
        """Whether the length is that of a share."""
        found = [s for s in self._body if isinstance(s, ast.FunctionDef) and s.name == "__len__"]
        given = [n.value for s in found for n in ast.walk(s) if isinstance(n, ast.Return)]
        if not found:
            return self._is_derived
        return bool(given) and all(v is not None and self._is_share(v) for v in given)

    def _is_share(self, value: ast.expr) -> bool:
        """Whether a number counts a share, or the batches of one: `self.num_samples // self.batch_size`."""
        is_of_batches = isinstance(value, ast.BinOp) and isinstance(value.op, ast.FloorDiv)
        counted = value.left if is_of_batches and isinstance(value, ast.BinOp) else value
        return self._divides(value) or ast.unparse(counted) in self._shares

    def _is_rank(self, node: ast.AST) -> bool:
        return self._is(node, self.ranks, RANKS)

    def _is_size(self, node: ast.AST) -> bool:
        return self._is(node, self.sizes, frozenset({Quantity.WORLD_SIZE}))

    def _is(self, node: ast.AST, names: set[str], kinds: frozenset[Quantity]) -> bool:
        if isinstance(node, (ast.Name, ast.Attribute)):
            return isinstance(node.ctx, ast.Load) and ast.unparse(node) in names
        return isinstance(node, ast.Call) and self._world.quantity(node) in kinds

    def _is_harmless_rank(self, node: ast.expr) -> bool:
        return self._is_kept(node) or self._is_start(node) or self._is_piece(node)

    def _is_piece(self, node: ast.expr) -> bool:
        """`offset = share * rank`, then `indices[offset : offset + share]`: a piece for each process."""
        product = self._parents[node]
        if not isinstance(product, ast.BinOp) or not isinstance(product.op, ast.Mult):
            return False
        if ast.unparse(product.left if product.right is node else product.right) not in self._shares:
            return False
        reads = self._reads_of_only(product)
        bounds = [product] if reads is None else reads
        return bool(bounds) and all(map(self._bounds, bounds))

    def _bounds(self, node: ast.expr) -> bool:
        """Whether a number is where a piece begins, or one share before its end."""
        parent = self._parents[node]
        if isinstance(parent, ast.Slice):
            return parent.lower is node and parent.step is None
        end = self._parents[parent] if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add) else None
        other = parent.right if isinstance(parent, ast.BinOp) and parent.left is node else None
        is_end = isinstance(end, ast.Slice) and end.upper is parent
        return is_end and other is not None and ast.unparse(other) in self._shares

    def _reads_of_only(self, value: ast.expr) -> list[ast.Name] | None:
        """The reads of the name that a value alone is given; None if it is given none."""
        given = self._parents[value]
        if not isinstance(given, ast.Assign) or len(given.targets) != 1 or not isinstance(given.targets[0], ast.Name):
            return None
        named = [n for n in ast.walk(self._node) if isinstance(n, ast.Name) and n.id == given.targets[0].id]
        stored = [n for n in named if isinstance(n.ctx, ast.Store)]
        return [n for n in named if n not in stored] if len(stored) == 1 else []

    def _is_harmless_size(self, node: ast.expr) -> bool:
        parent = self._parents[node]
        if isinstance(parent, ast.BinOp):
            return self._is_part_of_share(parent, node)
        return self._is_kept(node) or self._is_step(node)

    def _is_kept(self, node: ast.expr) -> bool:
        """Whether a number is only kept, handed to the base class, or checked: `if rank is None: raise ...`."""
        parent = self._parents[node]
        if isinstance(parent, (ast.Assign, ast.AnnAssign)):
            return parent.value is node
        call = self._parents[parent] if isinstance(parent, ast.keyword) else parent
        if isinstance(call, ast.Call) and self._is_derived:
            return ast.unparse(call.func).endswith("__init__")
        above = list(self._up(node))
        if any(isinstance(each, ast.Raise) for each in above):
            return True
        test = next((each for each in above if isinstance(each, (ast.If, ast.Assert))), None)
        if isinstance(test, ast.If) and any(node is inner for inner in ast.walk(test.test)):
            return _asks_for_none(parent) or (isinstance(test.body[-1], ast.Raise) and not test.orelse)
        return isinstance(test, ast.Assert)

    def _is_start(self, node: ast.expr) -> bool:
        """`indices[rank:n:size]`, `islice(indices, rank, None, size)`."""
        parent = self._parents[node]
        if isinstance(parent, ast.Slice):
            return parent.lower is node and parent.step is not None and self._is_size(parent.step)
        if isinstance(parent, ast.Call) and "itertools.islice" in self._world.facts.called(parent):
            return len(parent.args) == 4 and parent.args[1] is node and self._is_size(parent.args[3])
        return False

    def _is_step(self, node: ast.expr) -> bool:
        parent = self._parents[node]
        start = parent.lower if isinstance(parent, ast.Slice) and parent.step is node else None
        if isinstance(parent, ast.Call) and len(parent.args) == 4 and parent.args[3] is node:
            start = parent.args[1]
        return start is not None and self._is_rank(start) and self._is_start(start)

    def _is_part_of_share(self, parent: ast.BinOp, node: ast.expr) -> bool:
        """Whether a number is a divisor, is rounded by, or makes a whole of shares again."""
        if isinstance(parent.op, (*_DIVISIONS, ast.Sub)):
            return parent.right is node
        other = parent.left if parent.right is node else parent.right
        if not isinstance(parent.op, ast.Mult):
            return False
        return ast.unparse(other) in self._shares or self._divides(other) or self._is_rounded_by(parent)

    def _is_rounded_by(self, product: ast.BinOp) -> bool:
        """Whether a product is what one step of all processes takes, and an order is only filled up to whole steps.

        `total = self.num_replicas * self.batch_size`, then `(total - len(order) % total) % total`.
        """
        reads = self._reads_of_only(product)
        return bool(reads) and all(map(self._is_rounding, reads or ()))

    def _is_rounding(self, read: ast.Name) -> bool:
        """Whether a number is a divisor, or what is wanting to it is computed."""
        parent = self._parents[read]
        if not isinstance(parent, ast.BinOp):
            return False
        is_divisor = isinstance(parent.op, _DIVISIONS) and parent.right is read
        return is_divisor or (isinstance(parent.op, ast.Sub) and _is_rest(parent, read))

    def _up(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self._parents:
            node = self._parents[node]
            yield node


def _asks_for_none(test: ast.AST) -> bool:
    return isinstance(test, ast.Compare) and any(
        isinstance(each, ast.Constant) and each.value is None for each in test.comparators
    )


def _is_rest(difference: ast.BinOp, read: ast.Name) -> bool:
    """`total - n % total`."""
    rest = difference.right
    is_rest = isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Mod)
    return is_rest and isinstance(rest, ast.BinOp) and same(difference.left, read) and same(rest.right, read)
