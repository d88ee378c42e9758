"""Functions that take a sum or mean over the processes, and where an evaluation asks one: it has the whole already.

    def reduce_mean(tensor, n):
        rt = tensor.clone()               shown = reduce_mean(loss, n)    in a step of the training: it stays
        dist.all_reduce(rt)
        rt /= n                           loss = reduce_mean(loss, n)     in an evaluation:   ->  loss = loss
        return rt

Where all processes have the same, such a function gives back what it was given.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.calls import SUMS
from migrate.alone.tests import asks_only_for_several
from migrate.analysis.syntax import LOOPS, is_docstring, line_of
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from migrate.alone.world import World

#: Methods that give the same numbers.
_SAME = frozenset({"clone", "detach", "contiguous"})
_GRADIENTS = frozenset({"torch.no_grad", "torch.inference_mode"})


def handed_back(world: World, call: ast.Call) -> ast.expr | None:
    """What a call gives where all processes give it the same: its first argument; None: something else."""
    targets = world.facts.targets(call)
    if len(targets) != 1 or not call.args or isinstance(call.args[0], ast.Starred):
        return None
    unit = targets[0]
    if isinstance(unit.node, ast.Lambda) or unit.owner is not None or not unit.positional:
        return None
    return call.args[0] if _Body(world, unit.positional[0].arg).hands_back(unit.body) else None


def is_evaluated(world: World, loops: Mapping[ast.AST, bool | None], call: ast.Call) -> bool:
    """Whether a call stands in a loop that evaluates, or below one in a function that does nothing else."""
    facts, unit = world.facts, world.facts.unit(call)
    around = [above for above in facts.tree(call).up(call) if isinstance(above, LOOPS) and facts.unit(above) is unit]
    known = [loops[above] for above in around if above in loops]
    if known or around:
        return bool(known) and known[0] is False
    mine = [node for node in loops if facts.unit(node) is unit]
    above = [node for node in mine if loops[node] is False and line_of(node) < call.lineno]
    return isinstance(unit, Function) and bool(mine) and len(above) == len(mine)


class _Body:
    """The statements of such a function, with the names for what it is given."""

    def __init__(self, world: World, given: str) -> None:
        self._world = world
        self._names = {given}

    def hands_back(self, statements: Iterable[ast.stmt]) -> bool:
        """Whether they do nothing but copy what is given, sum it up, divide it by the number of processes, give it."""
        return all(map(self._is_plain, statements))

    def _is_plain(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.If):
            sides = self.hands_back(statement.body) and self.hands_back(statement.orelse)
            return sides and asks_only_for_several(self._world, statement.test)
        if isinstance(statement, ast.With):
            asked = [item.context_expr for item in statement.items]
            is_plain = all(isinstance(each, ast.Call) and self._world.facts.called(each) & _GRADIENTS for each in asked)
            return is_plain and self.hands_back(statement.body)
        if isinstance(statement, ast.Assign):
            is_same = len(statement.targets) == 1 and self._is_same(statement.value)
            self._names |= {to.id for to in statement.targets if isinstance(to, ast.Name)}
            return is_same and all(isinstance(to, ast.Name) for to in statement.targets)
        if isinstance(statement, ast.AugAssign):
            is_divided = isinstance(statement.op, ast.Div) and self._world.is_size(statement.value)
            return is_divided and self._is_same(statement.target)
        if isinstance(statement, ast.Return):
            return statement.value is not None and self._is_same(statement.value)
        return isinstance(statement, ast.Pass) or is_docstring(statement) or self._sums(statement)

    def _sums(self, statement: ast.stmt) -> bool:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not call.args:
            return False
        if isinstance(call.func, ast.Attribute) and call.func.attr == "div_":
            return self._is_same(call.func.value) and self._world.is_size(call.args[0])
        return bool(self._world.facts.called(call) & SUMS) and self._is_same(call.args[0])

    def _is_same(self, node: ast.expr) -> bool:
        """Whether it is what was given, copied, or divided by the number of processes."""
        if isinstance(node, ast.BinOp):
            return isinstance(node.op, ast.Div) and self._world.is_size(node.right) and self._is_same(node.left)
        if isinstance(node, ast.Attribute):
            return node.attr == "data" and self._is_same(node.value)
        if isinstance(node, ast.Call):
            is_method = isinstance(node.func, ast.Attribute) and node.func.attr in _SAME and not node.args
            return is_method and isinstance(node.func, ast.Attribute) and self._is_same(node.func.value)
        return isinstance(node, ast.Name) and node.id in self._names
