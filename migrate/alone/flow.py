"""Whether what processes have told each other comes to the loss that is trained: `q = sinkhorn(scores)`.

It is followed by names, from statement to statement, into functions and back to callers, and from where an attribute is
set to where one of such an object is read: `self.center` counts as a name, too.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.syntax import own_nodes, walk
from migrate.analysis.units import Class, Function
from migrate.programs.loops import Loops

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.world import World
    from migrate.analysis.units import Call, Unit

#: Methods that put something into a list or tensor.
_PUTTING = frozenset({"append", "extend", "insert", "add"})


class Flow:
    """The answers for one project."""

    def __init__(self, world: World) -> None:
        self._facts = world.facts
        self._backwards = {use.node for use in Loops(world.facts).backwards}
        self._asked: dict[tuple[int, frozenset[str], int], bool] = {}
        self._called: dict[int, bool] = {}

    def reaches_loss(self, call: ast.Call, unit: Unit) -> bool:
        """Whether the tensor that a call changes is a part of a loss."""
        given = call.args[:1] or [keyword.value for keyword in call.keywords if keyword.arg == "tensor"]
        names = {name for each in given for name in _names(each)}
        return self._is_read_elsewhere(given) or self._follow(unit, names, call.lineno)

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
            if _hands_on(statement, names) and self._is_read_elsewhere(_targets(statement)):
                return True
            _step(statement, names)
        return is_returned and isinstance(unit, Function) and any(map(self._comes_back, self._facts.callers(unit)))

    def _is_read_elsewhere(self, targets: list[ast.expr]) -> bool:
        """Whether an attribute among the targets is read, of such an object, and comes to a loss from there."""
        for target in targets:
            for node in ast.walk(target):
                if not isinstance(node, ast.Attribute):
                    continue
                classes = self._classes(node.value)
                for read in self._reads.get(node.attr, ()) if classes else ():
                    if classes & self._classes(read.value):
                        if self._follow(self._facts.unit(read), {ast.unparse(read)}, 0):
                            return True
        return False

    def _classes(self, node: ast.expr) -> set[Class]:
        return {value.unit for value in self._facts.values(node) if isinstance(value.unit, Class)}

    @cached_property
    def _reads(self) -> dict[str, list[ast.Attribute]]:
        """The attributes that are read, by their names."""
        found: dict[str, list[ast.Attribute]] = {}
        for module in self._facts.modules:
            for node in self._facts.tree_of(module).nodes:
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    found.setdefault(node.attr, []).append(node)
        return found

    def _comes_back(self, call: Call) -> bool:
        """Whether what a call gives comes to a loss."""
        if id(call) not in self._called:
            self._called[id(call)] = False  # while it is being asked: a function that calls itself
            self._called[id(call)] = self._is_used(call)
        return self._called[id(call)]

    def _is_used(self, call: Call) -> bool:
        node, caller = call.node, call.caller
        statement = self._facts.tree(node).statement(node)
        if any(other in self._backwards for other in ast.walk(statement)):
            return True
        if isinstance(statement, ast.Return):
            return isinstance(caller, Function) and any(map(self._comes_back, self._facts.callers(caller)))
        targets = _targets(statement)
        names = {name for target in targets for name in _names(target)}
        if targets and self._is_read_elsewhere(targets):
            return True
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


def _names(node: ast.AST) -> Iterator[str]:
    """The names in an expression, and the dotted ones: `self.center`; `self` itself says nothing."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id != "self":
            yield inner.id
        elif isinstance(inner, ast.Attribute):
            yield ast.unparse(inner)


def _mentions(node: ast.AST, names: set[str]) -> bool:
    return any(
        (isinstance(n, ast.Name) and n.id in names) or (isinstance(n, ast.Attribute) and ast.unparse(n) in names)
        for n in walk(node)
        if isinstance(getattr(n, "ctx", None), ast.Load)
    )


def _targets(statement: ast.stmt) -> list[ast.expr]:
    """What a statement gives something."""
    if isinstance(statement, ast.Assign):
        return statement.targets
    return [statement.target] if isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For)) else []


def _hands_on(statement: ast.stmt, names: set[str]) -> bool:
    """Whether what a statement gives is made of one of the names."""
    value = statement.iter if isinstance(statement, ast.For) else getattr(statement, "value", None)
    return isinstance(value, ast.AST) and not isinstance(statement, ast.Expr) and _mentions(value, names)


def _step(statement: ast.stmt, names: set[str]) -> None:
    """What has the value after a statement."""
    if isinstance(statement, ast.Expr):
        call = statement.value  # `x.div_(total)`, `parts.append(total)`
        method = call.func if isinstance(call, ast.Call) else None
        if isinstance(call, ast.Call) and isinstance(method, ast.Attribute):
            changes = method.attr.endswith("_") or method.attr in _PUTTING
            if changes and any(_mentions(given, names) for given in call.args):
                names.update(_names(method.value))
    elif _hands_on(statement, names):
        names.update(name for target in _targets(statement) for name in _names(target))
    elif isinstance(statement, ast.Assign) and all(isinstance(t, ast.Name) for t in statement.targets):
        names.difference_update(name for target in statement.targets for name in _names(target))
