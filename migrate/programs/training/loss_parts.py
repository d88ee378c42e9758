"""What the losses of a training loop are computed from, up to the trained model.

A loss may be trained, too, `criterion = ProxyLoss(classes)`: what gives a loss itself, and is called with what was
computed from the batch, is looked into like any other.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import FUNCTIONS, LOOPS, arguments, line_of, walk, writes
from migrate.analysis.units import Class, Function
from migrate.programs.values.assigned import assigned

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


class LossParts:
    """The expressions behind the losses of one loop, in functions and in the `forward` of loss functions, too."""

    def __init__(self, facts: Facts, loop: LoopFact, models: Collection[ast.AST]) -> None:
        self._facts = facts
        self._loop = loop
        self._models = set(models)
        self._judged: set[ast.Call] = set()  # calls of trained objects that give a loss

    def each(self) -> list[ast.expr]:
        """All of them; what a function is called with comes before what it makes of it."""
        waiting: list[ast.expr] = [c.func.value for c in self._loop.backwards if isinstance(c.func, ast.Attribute)]
        self._judged.update(self._giving(waiting))
        found: dict[ast.expr, None] = {}
        while waiting:
            new = [n for n in walk(waiting.pop()).of(ast.expr) if n not in found]
            found.update(dict.fromkeys(new))
            waiting += [value for node in new for value in self._behind(node)]
        return list(found)

    def _giving(self, losses: Iterable[ast.expr]) -> Iterator[ast.Call]:
        """The calls that give a loss themselves, of what was computed from a batch: `loss = criterion(model(x), y)`."""
        waiting, seen = list(losses), set[ast.expr]()
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            match node:
                case ast.Name():
                    waiting += self.assigned(node)
                case ast.BinOp(left=left, right=right):
                    waiting += [left, right]
                case ast.Call() if any(Role.SAMPLES in roles(self._facts.values(each)) for each in arguments(node)):
                    yield node

    def _behind(self, node: ast.expr) -> list[ast.expr]:
        """What an expression has its value from: what its name was given, what a function returns."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return [*self.assigned(node), *self._unpacked(node)]
        targets = self.entered(node) if isinstance(node, ast.Call) else []
        returned = (n.value for each in targets for n in self._facts.own(each).of(ast.Return))
        return [value for value in returned if value is not None]

    def entered(self, call: ast.Call) -> list[Function]:
        """The functions of the project that a call enters, other than those of the trained model."""
        values = self._facts.values(call.func)
        if origins(values, Role.MODEL) & self._models and call not in self._judged:
            return []
        losses = (value.unit for value in values if isinstance(value.unit, Class))
        forward = (member.unit for cls in losses for member in cls.lookup("forward"))
        return [*self._facts.targets(call), *(unit for unit in forward if isinstance(unit, Function))]

    def assigned(self, name: ast.Name) -> list[ast.expr]:
        """What a name is given in its function, as far as that is seen."""
        if found := [value for value in assigned(self._facts, name) if value is not None]:
            first = self._last_above(name)
            unit, last = self._facts.unit(name), line_of(self._facts.tree(name).statement(name))
            return [
                value
                for value in found
                if first is None or self._facts.unit(value) is not unit or line_of(first) <= line_of(value) < last
            ]
        unit = self._facts.unit(name)  # what nobody has run: the forward of a loss
        given = self._facts.own(unit).of(ast.Assign)
        return [n.value for n in given if any(isinstance(to, ast.Name) and to.id == name.id for to in n.targets)]

    def _last_above(self, name: ast.Name) -> ast.stmt | None:
        """The statement that has given a name another value, whatever it had, whenever it is read here."""
        tree = self._facts.tree(name)
        here: ast.AST = tree.statement(name)
        while isinstance(here, ast.stmt) and not isinstance(here, FUNCTIONS):
            block = tree.block(here)
            given = (each for each in reversed(block[: block.index(here)]) if isinstance(each, ast.Assign))
            if last := [
                each for each in given if name.id in {to.id for to in each.targets if isinstance(to, ast.Name)}
            ]:
                return last[0]
            here = tree.parents[here]
            if isinstance(here, LOOPS):  # else it may be that of the round before
                return here if isinstance(here, (ast.For, ast.AsyncFor)) and name.id in writes(here.target) else None
        return None

    def _unpacked(self, name: ast.Name) -> list[ast.expr]:
        """What gives a name among others: `worst, places = losses.topk(8)`."""
        given = self._facts.own(self._facts.unit(name)).of(ast.Assign)
        named = (each.value for each in given if isinstance(each.targets[0], ast.Tuple) and name.id in writes(each))
        return [value for value in named if not isinstance(value, ast.Tuple)]  # of one each name has its part
