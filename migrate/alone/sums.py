"""Sums over all processes that stay: in programs without a DataLoader, and inside of models.

With loaders every evaluation is exact already, and what training adds up is joined after it. Without, each process has
data of its own, drawn or taken by its rank: only the sum that the program takes itself is that of all. So it is with
what a model, or a loss, sums up while it is trained (`alone/inside.py`), a step shows
(`alone/in_steps.py`), and an object joins after it (`alone/joining.py`).
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.broadcasts import Broadcasts
from migrate.alone.calls import REDUCTIONS, SUMS, is_of_some
from migrate.alone.collected import Collecting
from migrate.alone.in_steps import InSteps
from migrate.alone.inside import Insides, summed
from migrate.alone.joining import Joining
from migrate.alone.quantities import RANKS
from migrate.alone.tests import asks_only_for_several
from migrate.alone.told import above
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import FUNCTIONS, argument_at
from migrate.programs.marker import ACCELERATOR
from migrate.programs.program import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.pen import Pen
    from migrate.alone.world import World
    from migrate.analysis.facts import Use
    from migrate.analysis.units import Module

_REDUCTIONS = {"SUM": "sum", "AVG": "mean"}
_SEVERAL = f"{ACCELERATOR}.num_processes > 1"
_ONE = f"{ACCELERATOR}.num_processes == 1"


class Sums:
    """What becomes of `all_reduce` in the modules of a project."""

    def __init__(self, world: World, *, joining: bool = True) -> None:
        self._world = world
        self.insides = Insides(world)
        self.collecting = Collecting(world, self.insides.calls)
        self.broadcasts = Broadcasts(world)
        self.joining = Joining(world, is_wanted=joining)
        self._in_steps = InSteps(world, self.joining)
        self._open = list(self._branches()) if self._staying else []
        if self._open:
            world.keep({branch.test for branch in self._open})

    def stays(self, call: ast.Call) -> bool:
        """Whether processes go on talking to each other in a call."""
        return call in self._staying

    def is_summed(self, node: ast.expr, unit: ast.AST) -> bool:
        """Whether an expression has what a unit goes on summing up over the processes."""
        facts, read = self._world.facts, {ast.unparse(n) for n in ast.walk(node) if isinstance(n, ast.expr)}
        mine = (
            call
            for call in self.joined
            if facts.tree(call) is facts.tree(node) and facts.tree(call).function(call) is unit
        )
        return any(found is not None and ast.unparse(found[0]) in read for found in map(_reduced, mine))

    def is_settled(self, use: Use) -> bool:
        """Whether a call stands in what a model runs, or in what nobody does."""
        return use.node in self.insides.calls or self.insides.is_in_unused(use.unit)

    @cached_property
    def _staying(self) -> frozenset[ast.Call]:
        facts, modules = self._world.facts, self._world.modules
        mine = [use.node for use in facts.calls_anywhere if use.unit.module in modules]
        told = {*self.insides.calls, *filter(self.broadcasts.holds, mine)}
        if not self.stay:
            return frozenset(told) | self.joined
        return frozenset({*told, *(call for call in mine if facts.called(call) & SUMS)})

    @cached_property
    def joined(self) -> frozenset[ast.Call]:
        """What goes on being summed up beside loaders, outside of models and losses."""
        found = (self.joining.calls | self._in_steps.calls) - self.insides.calls.keys()
        if self.stay or not (kept := {call for call in found if _reduced(call) is not None}):
            return frozenset()
        facts, modules = self._world.facts, self._world.modules
        mine = (use.node for use in facts.calls_anywhere if use.unit.module in modules)
        going = {self._summed(call) for call in mine if facts.called(call) & REDUCTIONS and call not in kept}
        return frozenset(call for call in kept if self._summed(call) not in going)

    def _summed(self, call: ast.Call) -> tuple[ast.AST, str]:
        """What a call sums up, and where: what divides a name there goes with its sums, so they stay or go together."""
        given = argument_at(call, 0, "tensor")
        return self._world.facts.tree(call).function(call), ast.unparse(given) if given is not None else ""

    def rewrite(self, pen: Pen, node: ast.expr) -> list[ast.AST] | None:
        """`loss = reduce_mean(loss)`, in an evaluation: it has the mean already; what is left to be looked at."""
        if not isinstance(node, ast.Call) or (given := self._idle.get(node)) is None:
            return None
        pen.rewrite(node, "{it}", it=given)
        return [given]

    @cached_property
    def _idle(self) -> dict[ast.Call, ast.expr]:
        return self._in_steps.idle(self.joined)

    @cached_property
    def stay(self) -> bool:
        """Whether each process computes something of its own: no loader deals the data out, and its rank counts."""
        return not self.has_loaders and any(map(self._counts, self._world.modules))

    @cached_property
    def has_loaders(self) -> bool:
        """Whether the program makes a loader, which deals the data out."""
        facts, modules = self._world.facts, self._world.modules
        mine = (use.node for use in facts.calls_anywhere if use.unit.module in modules)
        return any(Role.LOADER in roles(facts.values(call)) for call in mine)

    def _counts(self, module: Module) -> bool:
        """Whether a file computes with a rank: `rank * size`, `seed + rank`, `i % world_size != rank`."""
        world, tree = self._world, self._world.facts.tree(module.tree)
        for node in tree.nodes:
            if isinstance(node, (ast.BinOp, ast.Compare)) and id(node) not in world.dead:
                sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
                others = [side for side in sides if world.quantity(side) not in RANKS]
                if len(sides) == 2 and len(others) == 1 and self._is_share(node, others[0]):
                    return True
        return False

    def _is_share(self, node: ast.BinOp | ast.Compare, other: ast.expr) -> bool:
        """Whether what is computed of a rank is no place, no text and no question for one process."""
        if isinstance(node, ast.Compare):
            return isinstance(other, ast.BinOp) and isinstance(other.op, ast.Mod)
        statement = self._world.facts.tree(node).statement(node)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if any(isinstance(t, ast.Attribute) and self._world.gives_place(t.attr) for t in targets):
            return False
        is_text = isinstance(other, ast.JoinedStr) or (isinstance(other, ast.Constant) and isinstance(other.value, str))
        return self._world.quantity(node) is None and not is_text

    def instead(self, statement: ast.stmt) -> str | None:
        """`x = accelerator.reduce(x)` for `all_reduce(x)`, also where that is all of a branch on several processes."""
        if not self._staying:
            return None
        if isinstance(statement, ast.If):
            inner = statement.body[0]
            is_alone = len(statement.body) == 1 and not statement.orelse and statement.test in self._world.kept
            is_alone = is_alone and asks_only_for_several(self._world, statement.test)
            text = self.instead(inner) if is_alone and not isinstance(inner, ast.If) else None
            return "\n".join([*above(self._world, inner), text]) if text is not None else None
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not self.stays(call):
            return None
        if not self._world.facts.called(call) & SUMS:
            return self.broadcasts.instead(statement)
        if (found := _reduced(call)) is None:
            return None
        given, reduction = found
        if call in self.insides.calls or call in self.joined:
            return summed(self._world, call, given, reduction)
        return f'{ast.unparse(given)} = {ACCELERATOR}.reduce({ast.unparse(given)}, reduction="{reduction}")'

    def asks(self, branch: ast.If) -> str | None:
        """What the test of a branch that stays asks the accelerator."""
        if branch.test not in self._world.kept:
            return None
        return _SEVERAL if any(self._sums(statement) for statement in branch.body) else _ONE

    def obstacles(self) -> Iterator[Refusal]:
        """Sums that the accelerator has no word for, in branches and functions that stay."""
        for use in self._world.facts.calls_anywhere if self.stay else ():
            if use.node in self._staying and use.node not in self.insides.calls:
                statement = self._world.facts.tree(use.node).statement(use.node)
                if self.instead(statement) is None:
                    why = f"`{ast.unparse(use.node)}` has no counterpart, and each process has data of its own"
                    yield Refusal(use.node, "MIG113", why, "sum up a tensor that has a name, by ReduceOp.SUM or AVG")

    def inside(self) -> Iterator[Refusal]:
        """What models and losses ask of the other processes, and the accelerator cannot do in their place."""
        way_out = "take it out, run migrate again, and write it with accelerator.gather or accelerator.reduce by hand"
        for call in self.insides.calls:
            statement = self._world.facts.tree(call).statement(call)
            if (why := self.insides.why_not(call)) is not None:
                yield Refusal(call, "MIG113", why, way_out)
            elif call not in self.collecting.found and self.instead(statement) is None:
                name = min(self._world.facts.called(call)).rpartition(".")[2]
                why = f"{name} runs inside a model or for a loss: what it gives depends on the number of processes"
                yield Refusal(call, "MIG113", why, way_out)
        for branch in self._open:
            if not asks_only_for_several(self._world, branch.test):
                why = "this asks for several processes and for something else, and what processes sum up depends on it"
                yield Refusal(branch, "MIG113", why, "make two branches of it, one in the other")

    def _branches(self) -> Iterator[ast.If]:
        """The decided branches that hold a sum, or leave before one."""
        for module in self._world.modules:
            tree = self._world.facts.tree(module.tree)
            for node in tree.nodes:
                if not isinstance(node, ast.If) or (truth := self._world.truth(node.test)) is None:
                    continue
                later = tree.block(node)[tree.block(node).index(node) + 1 :]
                is_left = isinstance(node.body[-1], ast.Return) and not node.orelse
                if (not truth and any(map(self._sums, node.body))) or (
                    truth and is_left and any(map(self._sums, later))
                ):
                    yield node

    def _sums(self, statement: ast.stmt) -> bool:
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            return False
        return any(isinstance(n, ast.Call) and self.stays(n) for n in ast.walk(statement))


def _reduced(call: ast.Call) -> tuple[ast.Name | ast.Attribute, str] | None:
    """What is summed up, and how the accelerator calls that; None: it has no word for it."""
    given, reduction = argument_at(call, 0, "tensor"), _REDUCTIONS.get(_operation(call))
    if not isinstance(given, (ast.Name, ast.Attribute)) or reduction is None or is_of_some(call):
        return None
    return given, reduction


def _operation(call: ast.Call) -> str:
    given = argument_at(call, 1, "op")
    return "SUM" if given is None else ast.unparse(given).rpartition(".")[2]
