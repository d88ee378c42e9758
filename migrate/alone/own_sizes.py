"""The size of one process's batches, where more than its loader goes by it: `noise = torch.randn(batch_size, 100)`.

    batch_size = args.batch_size // world_size            batch_size = args.batch_size
    loader = DataLoader(data, batch_size)          ->     loader = DataLoader(data, batch_size)
    part = batch_size // 4                                part = batch_size // accelerator.num_processes // 4
    seen += batch_size * world_size                       seen += batch_size

The accelerator divides the batches, so the name has the size of all processes' from there on. In an evaluation that is
what is meant: behind the gather every process has the whole batch. So it is in what is only shown.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from migrate.alone.numbers import is_shown, undivided
from migrate.analysis.syntax import walk
from migrate.analysis.texts import text_of
from migrate.analysis.units import Function
from migrate.programs.loops import Loops
from migrate.programs.marker import ACCELERATOR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.pen import Pen
    from migrate.alone.scales import Scales
    from migrate.alone.world import World
    from migrate.analysis.units import Unit

_COUNT = f"{ACCELERATOR}.num_processes"
_DEEPEST = 4  # calls between a division and a read


class Division(NamedTuple):
    """A statement that divides the size of batches by the number of processes, and what has that from there on."""

    statement: ast.stmt
    target: ast.Name | ast.Attribute


class OwnSizes:
    """The reads of such sizes in the modules of a project."""

    def __init__(self, world: World, scales: Scales) -> None:
        self._world = world
        self._scales = scales

    def rewrite(self, pen: Pen, node: ast.expr) -> list[ast.AST] | None:
        """Divide what a process goes by; what is multiplied by the number of processes is the size of all of them."""
        if not self._divisions:
            return None
        if (factors := self._of_all(node)) is not None:
            pen.rewrite(node, "{it}", it=factors[0])
            return [*factors[1:]]
        if not isinstance(node, (ast.Name, ast.Attribute)) or not self._is_own(node) or self._is_whole(node):
            return None
        above = self._world.facts.tree(node).parents[node]
        text = f"{ast.unparse(node)} // {_COUNT}"
        is_apart = isinstance(above, (ast.Call, ast.keyword, ast.Assign, ast.Tuple, ast.Subscript, ast.Compare))
        pen.rewrite(node, text if is_apart else f"({text})")
        return []

    def _of_all(self, node: ast.expr) -> list[ast.expr] | None:
        """`x * batch_size` of `x * batch_size * world_size`, and its factors but for the size."""
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            return None
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if self._world.is_size(other):
                factors = list(_factors(one))
                if own := [each for each in factors if self._is_own(each)]:
                    return [one, *(each for each in factors if each is not own[0])]
        return None

    def _is_own(self, node: ast.expr) -> bool:
        """Whether a name has what was divided, where it is read."""
        if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
            return False
        if node in self._scales.shared:
            return False
        return any(self._is_of(division, node) for division in self._divisions)

    def _is_of(self, division: Division, node: ast.Name | ast.Attribute) -> bool:
        facts, target = self._world.facts, division.target
        if facts.module(node) is facts.module(target) and text_of(node) == text_of(target):
            above = {facts.tree(node).function(node), *facts.tree(node).up(node)}
            if facts.tree(target).function(target) in above:
                return node.lineno > (division.statement.end_lineno or 0) and not self._is_given_anew(division, node)
        if not isinstance(target, ast.Attribute) or not isinstance(node, ast.Attribute) or node.attr != target.attr:
            return False
        is_same = bool(facts.values(node.value) & facts.values(target.value))
        is_same = is_same or text_of(node.value) == text_of(target.value)
        return is_same and self._comes_after(division, facts.unit(node), _DEEPEST)

    def _is_given_anew(self, division: Division, node: ast.Name | ast.Attribute) -> bool:
        """Whether the name has another value by then, on every way: `batch_size = 64`, which is divided below."""
        tree = self._world.facts.tree(node)
        for above in (node, *tree.up(node)):
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return False  # which may be called at any time
            block = tree.block(above) if isinstance(above, ast.stmt) else []
            for before in reversed(block[: block.index(above)] if above in block else []):
                if any(inner is division.statement for inner in walk(before)):
                    return False
                if _gives(before, division.target):
                    return True
        return False

    def _comes_after(self, division: Division, unit: Unit, depth: int) -> bool:
        """Whether what divides calls a function afterwards."""
        facts = self._world.facts
        if not isinstance(unit, Function) or depth == 0:
            return False
        where = facts.unit(division.target)
        return any(
            call.node.lineno > division.statement.lineno
            if call.caller is where
            else self._comes_after(division, call.caller, depth - 1)
            for call in facts.callers(unit)
        )

    @cached_property
    def _divisions(self) -> tuple[Division, ...]:
        return tuple(self._divided())

    def _divided(self) -> Iterator[Division]:
        """The statements that divide, also those of branches for several processes."""
        world, sizes = self._world, self._scales.batch_sizes
        names = {ast.unparse(n) for n in sizes if isinstance(n, (ast.Name, ast.Attribute))}
        for module in world.modules:
            for node in world.facts.tree(module.tree).nodes:
                target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
                if isinstance(node, ast.Assign) and (node.value not in sizes or undivided(world, node.value) is None):
                    continue
                if isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Div, ast.FloorDiv)):
                    target = node.target if ast.unparse(node.target) in names and world.is_size(node.value) else None
                if isinstance(node, ast.stmt) and isinstance(target, (ast.Name, ast.Attribute)):
                    yield Division(node, target)

    def _is_whole(self, node: ast.expr) -> bool:
        """Whether an evaluation goes by a size, or only what is shown."""
        facts = self._world.facts
        around_it = (self._loops[above] for above in facts.tree(node).up(node) if above in self._loops)
        if (trains := next(around_it, None)) is not None:
            return not trains
        unit = facts.unit(node)
        around = [trains for loop, trains in self._loops.items() if facts.unit(loop) is unit]
        return (bool(around) and not any(around)) or is_shown(self._world, node)

    @cached_property
    def _loops(self) -> dict[ast.AST, bool]:
        """The loops that train, and those that evaluate."""
        loops = Loops(self._world.facts)
        found: dict[ast.AST, bool] = dict.fromkeys((loop.node for loop in loops.evaluation), False)
        return found | dict.fromkeys((loop.node for loop in loops.training), True)


def _gives(statement: ast.stmt, target: ast.Name | ast.Attribute) -> bool:
    """Whether a statement gives a name a value that does not come from the one that it has."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    name = text_of(target)
    reads = (inner for inner in walk(statement.value) if isinstance(inner, (ast.Name, ast.Attribute)))
    return text_of(statement.targets[0]) == name and all(text_of(read) != name for read in reads)


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    """The factors of a product."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node
