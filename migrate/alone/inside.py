"""Sums over all processes that are taken inside a model or for a loss: the center of a teacher, a share of prototypes.

What is computed there is of the batches of all processes, so the sum stays, and is the accelerator's. That is so where
each step of a training comes to it; an evaluation shares its batches out by rows, and would sum up something else.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.calls import GATHERS, SAME, SUMS
from migrate.alone.flow import Flow
from migrate.analysis.syntax import LOOPS
from migrate.analysis.units import Function
from migrate.programs.loops import Loops
from migrate.programs.marker import ACCELERATOR
from migrate.programs.reach.callees import on_all_ways
from migrate.programs.reach.outsiders import is_inside_model
from migrate.programs.reach.unused import Unused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.world import World
    from migrate.analysis.facts import Use
    from migrate.analysis.units import Call, Unit


@dataclass(frozen=True, slots=True)
class Inner:
    """What is known of a unit: whether a model runs it, other code does, and whether only a training does."""

    is_inside: bool
    is_outside: bool
    is_trained: bool


class Insides:
    """The calls between processes that stand in models, or in functions that models call."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._known: dict[Unit, Inner] = {}

    @cached_property
    def calls(self) -> dict[ast.Call, Inner]:
        """These calls, also those of branches that one process does not come to."""
        facts = self._world.facts
        return {
            use.node: inner
            for use in facts.calls_anywhere
            if use.unit.module in self._world.modules and facts.called(use.node) & (SAME | GATHERS)
            if (inner := self._of_call(use)).is_inside and not self.is_in_unused(use.unit)
        }

    def is_of_training(self, node: ast.AST) -> bool:
        """Whether code of a model, or of functions that it calls, runs only where that is trained."""
        inner = self._of(self._world.facts.unit(node))
        return inner.is_inside and not inner.is_outside and inner.is_trained

    def _of_call(self, use: Use) -> Inner:
        """Of a call outside of models, whether what it gives comes to a loss."""
        inner = self._of(use.unit)
        if inner.is_inside or is_inside_model(self._world.facts, use.unit):
            return inner
        if not self._flow.reaches_loss(use.node, use.unit):
            return inner
        return Inner(True, False, self._trains(use.node))

    @cached_property
    def _flow(self) -> Flow:
        return Flow(self._world)

    def is_in_unused(self, unit: Unit) -> bool:
        """Whether a unit is a method of a class that stays."""
        return isinstance(unit, Function) and unit.owner is not None and unit.owner.node in self._unused

    def is_unused(self, statement: ast.AST) -> bool:
        """Whether it is a class in which processes talk, and which nothing uses: it stays as it is."""
        return statement in self._unused

    @cached_property
    def _unused(self) -> frozenset[ast.ClassDef]:
        facts = self._world.facts
        unused = facts.once(Unused)
        return frozenset(
            use.unit.owner.node
            for use in facts.calls_anywhere
            if use.unit.module in self._world.modules and isinstance(use.unit, Function) and use.unit.owner is not None
            if facts.called(use.node) & (SAME | GATHERS) and unused.holds(use.unit.owner.node)
        )

    def why_not(self, call: ast.Call) -> str | None:
        """Why a call among these cannot be the accelerator's."""
        name = min(self._world.facts.called(call) & (SAME | GATHERS)).rpartition(".")[2]
        inner = self.calls[call]
        if inner.is_outside:
            return f"{name} runs inside a model, and in code around models, too"
        if not inner.is_trained and not self._is_for_training(call) and not is_mean(self._world, call):
            return f"{name} runs inside a model or for a loss, and not only where that is trained"
        return None

    def _is_for_training(self, call: ast.Call) -> bool:
        """Whether a call stands under `if self.training:`."""
        return any(
            isinstance(above, ast.If)
            and isinstance(above.test, ast.Attribute)
            and above.test.attr == "training"
            and any(call in ast.walk(statement) for statement in above.body)
            for above in self._world.facts.tree(call).up(call)
        )

    def _of(self, unit: Unit) -> Inner:
        if unit not in self._known:
            self._known[unit] = Inner(False, False, True)  # while it is being asked: recursion adds nothing
            self._known[unit] = self._asked(unit)
        return self._known[unit]

    def _asked(self, unit: Unit) -> Inner:
        facts = self._world.facts
        if not isinstance(unit, Function):
            return Inner(False, True, False)
        callers = facts.callers(unit)
        if is_inside_model(facts, unit):
            is_trained = all(self._is_called_in_training(c) or self._trains(c.node) for c in callers)
            return Inner(True, False, bool(callers) and is_trained)
        if self._may_be_called_unseen(unit):
            return Inner(True, True, False)
        above = [(call, self._of(call.caller)) for call in callers]
        return Inner(
            any(inner.is_inside for _, inner in above),
            not above or any(inner.is_outside for _, inner in above),
            bool(above) and all(inner.is_trained or self._is_called_in_training(call) for call, inner in above),
        )

    def _is_called_in_training(self, call: Call) -> bool:
        """Whether a model calls a function under `if self.training:`."""
        return is_inside_model(self._world.facts, call.caller) and self._is_for_training(call.node)

    def _may_be_called_unseen(self, unit: Function) -> bool:
        """Whether a method of a model, which was not looked into, names a function, or one that names it."""
        names, met = {unit.name}, True
        while met:
            met = False
            for other, read in self._unread.items():
                if other.name not in names and not names.isdisjoint(read):
                    if is_inside_model(self._world.facts, other):
                        return True
                    names.add(other.name)
                    met = True
        return False

    @cached_property
    def _unread(self) -> dict[Function, frozenset[str]]:
        """The functions that were not looked into, with the names in their code: comments name nothing."""
        units = (u for u in self._world.facts.functions if not isinstance(u.node, ast.Lambda))
        return {unit: frozenset(_named(unit.node)) for unit in units if not self._world.facts.was_run(unit)}

    def _trains(self, call: ast.Call) -> bool:
        """Whether only a training loop comes to a call; recursion adds nothing."""
        return on_all_ways(self._world.facts, call, self._is_in_training, again=True)

    def _is_in_training(self, call: ast.AST) -> bool | None:
        """Whether a call stands in a training loop, or in a model that is only trained; None: its callers say."""
        facts = self._world.facts
        unit = facts.unit(call)
        if isinstance(unit, Function) and is_inside_model(facts, unit):
            return self._of(unit).is_trained
        around = next((above for above in facts.tree(call).up(call) if above in self._loops), None)
        return self._loops[around] if around is not None else None

    @cached_property
    def _loops(self) -> dict[ast.AST, bool]:
        """The loops that train, and those that evaluate."""
        loops = Loops(self._world.facts)
        found: dict[ast.AST, bool] = dict.fromkeys((loop.node for loop in loops.evaluation), False)
        return found | dict.fromkeys((loop.node for loop in loops.training), True)


def _named(root: ast.AST) -> Iterator[str]:
    """The names and attributes in a piece of code, and the texts, by which an attribute may be asked for."""
    for node in ast.walk(root):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def summed(world: World, call: ast.Call, given: ast.expr, reduction: str) -> str:
    """`x = accelerator.reduce(x)` where only the name `x` has the tensor; else the sum is put where the tensor is."""
    text = ast.unparse(given)
    reduced = f'{ACCELERATOR}.reduce({text}, reduction="{reduction}")'
    return f"{text} = {reduced}" if _is_alone(world, call, given) else f"{text}.copy_({reduced})"


def is_mean(world: World, call: ast.Call) -> bool:
    """Whether what is summed up is divided by the number of processes wherever it is read.

    Where each process has the same number, as in an evaluation, that is the number itself.
    """
    if not world.facts.called(call) & SUMS or not call.args or not isinstance(call.args[0], ast.Name):
        return False
    name, function, tree = call.args[0].id, world.facts.tree(call).function(call), world.facts.tree(call)
    stores = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name and not _is_read(n)]
    last = min((tree.statement(n).end_lineno or 0 for n in stores if n.lineno > call.lineno), default=None)
    later = [n for n in _reads(function, name) if n.lineno > call.lineno and (last is None or n.lineno <= last)]
    return bool(later) and all(_is_divided(world, tree.parents[n], n) for n in later)


def _is_divided(world: World, above: ast.AST, node: ast.expr) -> bool:
    """`x / n`, and `x / (len(x) * n)`, of the number of processes."""
    if not isinstance(above, ast.BinOp) or not isinstance(above.op, ast.Div) or above.left is not node:
        return False
    by = above.right
    sides = [by.left, by.right] if isinstance(by, ast.BinOp) and isinstance(by.op, ast.Mult) else [by]
    return any(map(world.is_size, sides))


#: Functions and methods that make a tensor of their own.
_MAKING = frozenset(
    """sum mean std var norm clone zeros ones full tensor stack cat matmul mm bmm einsum bincount""".split()
)
_MOVES = frozenset("cuda to float double".split())


def _is_alone(world: World, call: ast.Call, given: ast.expr) -> bool:
    """Whether a name is the only one of its tensor, when that is summed up."""
    function = world.facts.tree(call).function(call)
    if not isinstance(given, ast.Name) or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    if given.id in {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}:
        return False
    stores = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == given.id and not _is_read(n)]
    comes_back = any(isinstance(node, LOOPS) for node in world.facts.tree(call).up(call))
    above = [world.facts.tree(n).statement(n) for n in stores if n.lineno < call.lineno or comes_back]
    made = [s for s in above if isinstance(s, ast.Assign)]
    if not made or not all(isinstance(s, ast.AugAssign) or _makes(s, given.id) for s in above):
        return False
    first = min(s.lineno for s in made)
    return not any(first < n.lineno < call.lineno and not _is_in_place(world, n) for n in _reads(function, given.id))


def _makes(statement: ast.stmt, name: str) -> bool:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    value, target = statement.value, statement.targets[0]
    if not isinstance(target, ast.Name) or target.id != name:
        return False
    if isinstance(value, ast.Call):
        named = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        if named in _MOVES and isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Call):
            value = value.func.value  # `torch.tensor(x).cuda()`
            named = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        return named in _MAKING
    return isinstance(value, ast.BinOp)


def _is_in_place(world: World, read: ast.Name) -> bool:
    """`x.div_(n)` as a statement, and `x` in what a tensor of its own is made of again."""
    tree = world.facts.tree(read)
    statement = tree.statement(read)
    if isinstance(statement, ast.Assign):
        return _makes(statement, read.id) and isinstance(statement.value, ast.BinOp)
    call = statement.value if isinstance(statement, ast.Expr) else None
    method = call.func if isinstance(call, ast.Call) else None
    return isinstance(method, ast.Attribute) and method.value is read and method.attr.endswith("_")


def _is_read(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)


def _reads(function: ast.AST, name: str) -> Iterator[ast.Name]:
    return (n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name and _is_read(n))
