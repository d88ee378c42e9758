"""Classes of a project that stand before a writer: what they lack themselves they hand on to it.

    class Board:
        def __init__(self, env):
            self.vis = visdom.Visdom(env=env)
            self.index = {}

        def __getattr__(self, name):
            return getattr(self.vis, name)

`board.text("done")` is the writer's `text`. What the methods keep count of (`self.index`) is the object's own business,
so that one process may count alone, as long as nothing of the program is decided by it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import is_docstring, own_nodes
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values

_HANDS_ON = "__getattr__"


class Fronts:
    """Questions about the classes before a writer."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._writers: dict[Class, str | None] = {}

    def writer(self, cls: Class) -> str | None:
        """The attribute by which a class has the writer that it hands on to; None: it is no front."""
        if cls not in self._writers:
            found = [value.unit for value in cls.lookup(_HANDS_ON)]
            unit = found[0] if len(found) == 1 else None
            self._writers[cls] = self._handed_on(unit) if isinstance(unit, Function) else None
        return self._writers[cls]

    def hand_on(self, values: Values, name: str) -> bool:
        """Whether an attribute of an object is that of the writer behind it."""
        classes = [value.unit for value in values if value.role is Role.INSTANCE and isinstance(value.unit, Class)]
        return (
            len(classes) == len(values) > 0
            and not any(cls.lookup(name) or any(each.sets(name) for each in cls.mro()) for cls in classes)
            and all(self.writer(cls) is not None for cls in classes)
        )

    def hands_on(self, unit: Function) -> bool:
        """Whether a function is the `__getattr__` of a front."""
        return unit.name == _HANDS_ON and unit.owner is not None and self.writer(unit.owner) is not None

    def _handed_on(self, unit: Function) -> str | None:
        """`return getattr(self.vis, name)`, and nothing else."""
        body = [statement for statement in unit.body if not is_docstring(statement)]
        call = body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None
        if not isinstance(call, ast.Call) or len(call.args) != 2 or call.keywords or len(unit.positional) != 2:
            return None
        own, name = (parameter.arg for parameter in unit.positional)
        on = call.args[0]
        if not isinstance(on, ast.Attribute) or "getattr" in unit.module.names:
            return None
        is_all = ast.unparse(call) == f"getattr({own}.{on.attr}, {name})"
        return on.attr if is_all and unit.owner is not None and self._is_writer(unit.owner, on.attr) else None

    def _is_writer(self, cls: Class, name: str) -> bool:
        """Whether the methods of a class set an attribute to writers, and to nothing else."""
        found = [
            binding.values
            for binding in self._facts.bindings
            if isinstance(binding.unit, Function)
            and binding.unit.owner is cls
            and binding.unit.positional
            and binding.target == f"{binding.unit.positional[0].arg}.{name}"
        ]
        return bool(found) and all(roles(values) == {Role.WRITER} for values in found)

    def counts_alone(self, cls: Class, speaking: Iterable[Function]) -> bool:
        """Whether what these methods of a front change of it decides nothing but what it writes.

        Other methods may give it away to be stored (`state["board"] = board.state_dict()`), nobody else asks for it.
        """
        kept = {name for unit in speaking for name in _changed(unit)} - {self.writer(cls)}
        methods = {value.unit for each in cls.mro() for values in each.names.values() for value in values}
        for module in self._facts.modules:
            for node in self._facts.tree_of(module).nodes:
                if not isinstance(node, ast.Attribute) or node.attr not in kept or not isinstance(node.ctx, ast.Load):
                    continue
                if not any(value.unit in self._related(cls) for value in self._facts.values(node.value)):
                    continue
                unit = self._facts.unit(node)
                if unit not in methods or not isinstance(unit, Function) or not self._is_stored(unit):
                    return False
        return True

    def _related(self, cls: Class) -> set[Class]:
        """The classes whose objects may be objects of a class."""
        units = {value.unit for value in cls.instances}
        return {cls, *(unit for unit in units if isinstance(unit, Class))}

    def _is_stored(self, unit: Function) -> bool:
        """Whether what a method gives is put away under a key, wherever it is called."""
        if not any(isinstance(node, (ast.Return, ast.Yield)) and node.value for node in own_nodes(unit.node)):
            return not unit.node.decorator_list if not isinstance(unit.node, ast.Lambda) else False
        if isinstance(unit.node, ast.Lambda) or unit.node.decorator_list:
            return False
        return all(call.handed is None and self._is_put_away(call.node) for call in self._facts.callers(unit))

    def _is_put_away(self, node: ast.AST) -> bool:
        above = self._facts.tree(node).parents[node]
        if isinstance(above, ast.Assign):
            return all(isinstance(target, ast.Subscript) for target in above.targets)
        return isinstance(above, (ast.Dict, ast.Expr))


def _changed(unit: Function) -> set[str]:
    """The attributes of its object that a method sets, changes an item of, or calls a method of."""
    if not unit.positional:
        return set()
    own = unit.positional[0].arg
    found = set()
    for node in own_nodes(unit.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.add(_first(node.func.value, own))
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            found.add(_first(node, own))
    return {name for name in found if name is not None}


def _first(node: ast.expr, own: str) -> str | None:
    """`index` of `self.index["loss"]`."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == own:
            return node.attr
        node = node.value
    return None
