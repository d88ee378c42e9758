"""Evaluation loops that need no gradients: none is taken in them, nor of what they compute."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import own_expressions, writes
from migrate.programs.shares.ground import Decision, Ground
from migrate.programs.shares.trail import Trail
from migrate.programs.values.kept import FILLING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops

#: What a tensor is asked or told where its gradient matters.
_DIFFERENTIATING = frozenset("grad requires_grad requires_grad_ retain_grad register_hook backward".split())
_LIBRARIES = ("torch.autograd.grad", "torch.autograd.functional.", "torch.func.", "functorch.", "torch.enable_grad")


def needed(facts: Facts, loops: Loops, loop: LoopFact) -> str:
    """What an evaluation loop needs gradients for; empty: with gradients off around it, it and the rest do the same."""
    if not isinstance(loop.node, ast.For):
        return "it is no loop over the loader itself"
    units = loops.updates.functions(loop.node)
    nodes = [node for root in (loop.node, *(unit.node for unit in units)) for node in ast.walk(root)]
    if (taken := next((node for node in nodes if _differentiates(facts, node)), None)) is not None:
        return f"line {getattr(taken, 'lineno', 0)} of {facts.file(taken).path} goes by gradients"
    if not any(_may_be_trained(facts, node) for node in nodes):
        return ""  # it only looks at the data
    ground = Ground(facts, loops)
    trails = [_Graph(ground, loop.unit, writes(loop.node) | _held(loop.node)).after(loop.node)]
    trails += [_Graph(ground, unit, _held(unit.node)).elsewhere() for unit in units]
    for decision in (decision for trail in trails for decision in trail):
        if isinstance(decision, _Trained):
            return f"a gradient is taken of {decision.name} at line {getattr(decision.node, 'lineno', 0)}"
    return ""


def _may_be_trained(facts: Facts, node: ast.AST) -> bool:
    """Whether a value may have to do with parameters, as a model, a tensor of its own, an object that holds either."""
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
        return False
    return bool(roles(facts.values(node)) & _TRAINED)


_TRAINED = frozenset({Role.MODEL, Role.PARAMETERS, Role.CRITERION, Role.TENSOR, Role.INSTANCE})


def _differentiates(facts: Facts, node: ast.AST) -> bool:
    if isinstance(node, (ast.Yield, ast.YieldFrom)):
        return True  # what runs over the generator would run without gradients, too
    if isinstance(node, ast.Attribute):
        return node.attr in _DIFFERENTIATING
    return isinstance(node, ast.Call) and any(name.startswith(_LIBRARIES) for name in facts.called(node))


def _held(node: ast.AST) -> set[str]:
    """Attributes and items that code sets, and containers that it fills, as they are written."""
    found: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, (ast.Attribute, ast.Subscript)) and isinstance(inner.ctx, ast.Store):
            found.add(ast.unparse(inner))
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in FILLING:
            found.add(ast.unparse(inner.func.value))
    return found


class _Trained(Decision):
    """A gradient is taken of what such a loop has computed."""

    __slots__ = ()


class _Graph(Trail):
    """The way of what a loop has computed, until a gradient is taken of it."""

    __slots__ = ()

    def statement(self, statement: ast.stmt) -> Iterator[Decision]:
        for part in own_expressions(statement):
            for node in ast.walk(part):
                if isinstance(node, ast.Attribute) and node.attr == "backward" and (name := self.name(node.value)):
                    yield _Trained(statement, "backward()", name)
        yield from super().statement(statement)
