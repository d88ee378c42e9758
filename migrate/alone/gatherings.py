"""What an evaluation gathers from all processes: with the whole of the data on each, its own part is all there is.

    parts = [torch.zeros_like(out) for _ in range(world_size)]
    dist.all_gather(parts, out)                                    ->   parts = [out]
    out = torch.cat(parts)

In a step of the training it is something else: a loss that compares rows needs those of the others. That is refused
(`alone/obstacles.py`), and so are lists of which single elements are asked for.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.calls import GATHERS, TO_ONE
from migrate.analysis.syntax import argument_at, is_none
from migrate.analysis.units import Function
from migrate.programs.loops import Loops

if TYPE_CHECKING:
    from migrate.alone.world import World
    from migrate.analysis.facts import Use
    from migrate.analysis.syntax import Tree
    from migrate.analysis.units import Unit

#: What takes a list for what is in it, one after the other.
_WHOLE = frozenset(
    """torch.cat torch.concat torch.concatenate torch.stack torch.vstack torch.hstack builtins.sum numpy.concatenate
    itertools.chain itertools.chain.from_iterable""".split()
)


class Gatherings:
    """The gathered lists in the modules of a project."""

    def __init__(self, world: World) -> None:
        self._world = world

    def holds(self, call: ast.Call) -> bool:
        """Whether a call gathers for an evaluation."""
        return call in self._given

    def instead(self, statement: ast.stmt) -> str | None:
        """What the statement of such a call becomes."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or call not in self._given:
            return None
        gathered, own = self._given[call]
        return f"{gathered.id} = [{ast.unparse(own)}]"

    def is_made(self, statement: ast.stmt) -> bool:
        """Whether a statement makes the list that such a call fills."""
        return statement in self._made

    @cached_property
    def _made(self) -> set[ast.stmt]:
        return {
            made
            for gathered, _ in self._given.values()
            if (made := filled_above(self._world.facts.tree(gathered), gathered)) is not None
        }

    @cached_property
    def _given(self) -> dict[ast.Call, tuple[ast.Name, ast.expr]]:
        """The calls, with the list that each fills and what it puts in."""
        world = self._world
        mine = [
            u for u in world.facts.calls_anywhere if u.unit.module in world.modules and id(u.node) not in world.dead
        ]
        found = {}
        for use in (use for use in mine if world.facts.called(use.node) & (GATHERS | TO_ONE)):
            filled = _to_one(use.node) if world.facts.called(use.node) & TO_ONE else _to_all(use.node)
            if filled is not None and self._is_whole(use, filled[0]):
                found[use.node] = filled
        return found

    def _is_whole(self, use: Use, gathered: ast.Name) -> bool:
        """Whether a list is made, filled, and read as a whole, and in no step of the training."""
        world = self._world
        tree, made = world.facts.tree(use.node), filled_above(self._world.facts.tree(gathered), gathered)
        if made is None or not isinstance(tree.parents[use.node], ast.Expr):
            return False
        function = tree.function(use.node)
        named = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == gathered.id and n is not gathered]
        reads = [name for name in named if isinstance(name.ctx, ast.Load)]
        whole = [name for name in reads if self._is_read_whole(name)]
        is_whole = all(name in whole or self._is_first(name) for name in reads) and (bool(whole) or not reads)
        return is_whole and not self._is_in_step(use.node, use.unit, set())

    def _is_first(self, name: ast.Name) -> bool:
        """`parts[0].keys()` of a list that is read as a whole as well, and `len(parts)`."""
        parent = self._world.facts.tree(name).parents[name]
        if isinstance(parent, ast.Subscript):
            return parent.value is name and isinstance(parent.ctx, ast.Load) and ast.unparse(parent.slice) == "0"
        return isinstance(parent, ast.Call) and "builtins.len" in self._world.facts.called(parent)

    def _is_read_whole(self, name: ast.Name) -> bool:
        tree = self._world.facts.tree(name)
        parent = tree.parents[name]
        if isinstance(parent, ast.IfExp) and parent.body is name and is_none(parent.orelse):
            parent = tree.parents[parent]  # `gather_object(found, parts if rank == 0 else None)`
        if isinstance(parent, ast.Starred):
            parent = tree.parents[parent]
        if isinstance(parent, (ast.For, ast.comprehension)):
            return parent.iter is name
        return isinstance(parent, ast.Call) and bool(self._world.facts.called(parent) & (_WHOLE | GATHERS | TO_ONE))

    @cached_property
    def _loops(self) -> tuple[set[ast.AST], set[ast.AST]]:
        """The loops that train, and those that evaluate."""
        loops = Loops(self._world.facts)
        return {loop.node for loop in loops.training}, {loop.node for loop in loops.evaluation}

    def _is_in_step(self, node: ast.AST, unit: Unit, seen: set[Unit]) -> bool:
        """Whether some way to a place leads through a step of the training, and no evaluation in it."""
        training, evaluating = self._loops
        for loop in self._world.facts.tree(node).loops(node):
            if loop in training or loop in evaluating:
                return loop in training
        if not isinstance(unit, Function) or unit in seen:
            return False
        seen.add(unit)
        calls = self._world.facts.callers(unit)
        return any(self._is_in_step(call.node, call.caller, seen) for call in calls)


def _to_all(call: ast.Call) -> tuple[ast.Name, ast.expr] | None:
    """`all_gather(parts, x)`: the list, and what this process puts in."""
    gathered, own = argument_at(call, 0, "tensor_list"), argument_at(call, 1, "tensor")
    is_plain = len(call.args) == 2 and not call.keywords
    return (gathered, own) if is_plain and isinstance(gathered, ast.Name) and own is not None else None


def _to_one(call: ast.Call) -> tuple[ast.Name, ast.expr] | None:
    """`gather(x, parts, dst=0)`, `gather_object(x, parts if rank == 0 else None)`."""
    own, gathered = argument_at(call, 0, "tensor"), argument_at(call, 1, "gather_list")
    if isinstance(gathered, ast.IfExp) and is_none(gathered.orelse):
        gathered = gathered.body
    to = argument_at(call, 2, "dst")
    is_plain = len(call.args) <= 3 and {keyword.arg for keyword in call.keywords} <= {"dst", "gather_list"}
    is_to_main = to is None or (isinstance(to, ast.Constant) and to.value == 0)
    is_plain = is_plain and is_to_main
    return (gathered, own) if is_plain and isinstance(gathered, ast.Name) and own is not None else None


def filled_above(tree: Tree, gathered: ast.Name) -> ast.stmt | None:
    """`parts = [torch.zeros_like(out) for _ in range(n)]`, `parts = [None] * n`: the last that is above."""
    function = tree.function(gathered)
    stored = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == gathered.id]
    above = [tree.statement(n) for n in stored if isinstance(n.ctx, ast.Store) and n.lineno < gathered.lineno]
    made = above[-1] if above else None
    if not isinstance(made, ast.Assign) or len(made.targets) != 1 or tree.function(made) is not function:
        return None
    value = made.value
    if isinstance(value, ast.IfExp) and is_none(value.orelse):
        value = value.body  # on the main process alone
    is_filled = isinstance(value, ast.ListComp) and len(value.generators) == 1
    is_repeated = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and isinstance(value.left, ast.List)
    return made if is_filled or is_repeated else None
