"""Whether what processes have told each other comes to the loss that is trained: `q = sinkhorn(scores)`.

It is followed by names, from statement to statement, into functions and back to callers.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import own_nodes
from migrate.analysis.units import Function
from migrate.programs.loops import Loops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.world import World
    from migrate.analysis.units import Unit


class Flow:
    """The answers for one project."""

    def __init__(self, world: World) -> None:
        self._facts = world.facts
        self._backwards = {use.node for use in Loops(world.facts).backwards}
        self._asked: dict[tuple[int, frozenset[str], int], bool] = {}

    def reaches_loss(self, call: ast.Call, unit: Unit) -> bool:
        """Whether the tensor that a call changes is a part of a loss."""
        names = {n.id for given in call.args[:1] for n in ast.walk(given) if isinstance(n, ast.Name)}
        return self._follow(unit, names - {"self"}, call.lineno)

    def _follow(self, unit: Unit, names: set[str], line: int) -> bool:
        """Whether names of a unit, as they are below a line, come to a loss."""
        key = id(unit), frozenset(names), line
        if key not in self._asked:
            self._asked[key] = False  # while it is being asked: going round adds nothing
            self._asked[key] = self._find(unit, set(names), line)
        return self._asked[key]

    def _find(self, unit: Unit, names: set[str], line: int) -> bool:
        is_returned = False
        for statement in self._statements(unit):
            if statement.lineno <= line or not names:
                continue
            if any(self._is_trained(node, names) for node in _own(statement)):
                return True
            is_returned = is_returned or (isinstance(statement, ast.Return) and _mentions(statement, names))
            _step(statement, names)
        return is_returned and isinstance(unit, Function) and any(map(self._comes_back, self._facts.callers(unit)))

    def _comes_back(self, call: object) -> bool:
        """Whether what a call gives comes to a loss."""
        node, caller = call.node, call.caller  # type: ignore[attr-defined]
        statement = self._facts.tree(node).statement(node)
        if any(other in self._backwards for other in ast.walk(statement)):
            return True
        if isinstance(statement, ast.Return):
            return isinstance(caller, Function) and any(map(self._comes_back, self._facts.callers(caller)))
        names = _targets(statement)
        return bool(names) and self._follow(caller, names, statement.end_lineno or statement.lineno)

    def _is_trained(self, node: ast.AST, names: set[str]) -> bool:
        if not isinstance(node, ast.Call):
            return False
        if node in self._backwards:
            return _mentions(node, names)
        for target in self._facts.targets(node):
            parameters = [p.arg for p in target.positional][int(target.owner is not None) :]
            given = dict(zip(parameters, node.args, strict=False)) | {k.arg: k.value for k in node.keywords if k.arg}
            handed = {name for name, value in given.items() if _mentions(value, names)}
            if handed and self._follow(target, handed, 0):
                return True
        return False

    def _statements(self, unit: Unit) -> list[ast.stmt]:
        nodes = own_nodes(unit.node) if isinstance(unit, Function) else self._facts.own(unit)
        return sorted((n for n in nodes if isinstance(n, ast.stmt)), key=lambda s: (s.lineno, s.col_offset))


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement, not those of statements in it."""
    waiting: list[ast.AST] = [n for n in ast.iter_child_nodes(statement) if not isinstance(n, ast.stmt)]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [n for n in ast.iter_child_nodes(node) if not isinstance(n, ast.stmt)]


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, ast.Load) for n in ast.walk(node))


def _targets(statement: ast.stmt) -> set[str]:
    """The names that a statement gives something."""
    if isinstance(statement, ast.Assign):
        given: list[ast.expr] = statement.targets
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For)):
        given = [statement.target]
    else:
        return set()
    return {n.id for target in given for n in ast.walk(target) if isinstance(n, ast.Name)} - {"self"}


def _step(statement: ast.stmt, names: set[str]) -> None:
    """What has the value after a statement."""
    value = statement.iter if isinstance(statement, ast.For) else getattr(statement, "value", None)
    if not isinstance(value, ast.AST):
        return
    if isinstance(statement, ast.Expr):
        call = statement.value  # `x.div_(total)`
        method = call.func if isinstance(call, ast.Call) else None
        if isinstance(call, ast.Call) and isinstance(method, ast.Attribute) and method.attr.endswith("_"):
            if any(_mentions(given, names) for given in call.args):
                names |= {n.id for n in ast.walk(method.value) if isinstance(n, ast.Name)} - {"self"}
        return
    if _mentions(value, names):
        names |= _targets(statement)
    elif isinstance(statement, ast.Assign) and all(isinstance(t, ast.Name) for t in statement.targets):
        names -= _targets(statement)
