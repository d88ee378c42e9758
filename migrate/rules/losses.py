"""What stands behind a loss: the models that it was computed by, and the function that made a number of it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.analysis.units import Unit

MOST_STEPS = 400  # expressions that are looked at for one loss: then it is drawn as coming from every model
FUNCTIONAL = ("torch.nn.functional.", "torch.nn.modules.loss.")  # losses that are functions, not objects
CUTS = frozenset({"detach", "item", "numpy", "tolist"})  # behind these no gradient flows


class Losses:
    """Follows losses back, through names, attributes of objects and functions of the project."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._bindings: dict[tuple[object, str], list[Binding]] = {}
        for binding in facts.bindings:
            self._bindings.setdefault((_scope(binding.unit, binding.target), binding.target), []).append(binding)

    def behind(self, backward: ast.Call) -> tuple[set[ast.AST], str]:
        """Where the models were made, and what the criterion is called; empty where that is not seen."""
        is_method = isinstance(backward.func, ast.Attribute) and not self._facts.called(backward)
        root = backward.func.value if is_method and isinstance(backward.func, ast.Attribute) else backward
        models: set[ast.AST] = set()
        criterion = ""
        for call in self._calls(root):
            made = origins(self._facts.values(call.func), Role.MODEL)
            models |= made
            criterion = criterion or ("" if made else self._criterion(call))
        return models - self._facts.parts(models), criterion

    def _criterion(self, call: ast.Call) -> str:
        is_object = any(value.role is Role.CRITERION for value in self._facts.values(call.func))
        names = [name for name in self._facts.called(call) if name.startswith(FUNCTIONAL) and "loss" in name]
        is_function = bool(names) or any("entropy" in name for name in self._facts.called(call))
        return ast.unparse(call.func) if is_object or is_function else ""

    def _calls(self, root: ast.expr) -> Iterator[ast.Call]:
        """The calls that a value comes from, those that are nearest first."""
        waiting: list[ast.AST] = [root]
        seen: set[int] = set()
        while waiting and len(seen) < MOST_STEPS:
            node = waiting.pop(0)
            if id(node) in seen:
                continue
            seen.add(id(node))
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Attribute) and node.func.attr in CUTS:
                    continue
                yield node
                waiting += [value for unit in self._facts.targets(node) for value in self._returned(unit)]
            if isinstance(node, (ast.Name, ast.Attribute)):
                waiting += self._given(node)
            waiting += ast.iter_child_nodes(node)

    def _returned(self, unit: Function) -> list[ast.AST]:
        own = (n.value for n in self._facts.own(unit) if isinstance(n, ast.Return))
        return [value for value in own if value is not None]

    def _given(self, node: ast.Name | ast.Attribute) -> list[ast.AST]:
        """What the statement nearest above gives a name; of an attribute, whatever the methods of its class do."""
        unit, name = self._facts.unit(node), ast.unparse(node)
        found = self._bindings.get((_scope(unit, name), name), [])
        if isinstance(node, ast.Name):
            above = [each for each in found if each.statement.lineno <= node.lineno]
            found = sorted(above or found, key=lambda each: each.statement.lineno)[-1:]
            sums = [each for each in above if isinstance(each.statement, ast.AugAssign)]
            found = above if sums and found and found[0] in sums else found
        values = (getattr(binding.statement, "value", None) for binding in found)
        return [value for value in values if isinstance(value, ast.expr)]


def _scope(unit: Unit, target: str) -> object:
    """Where a name means one thing: a unit, or for `self.loss` the class."""
    is_own = target.startswith("self.") and isinstance(unit, Function) and isinstance(unit.owner, Class)
    return id(unit.owner) if is_own and isinstance(unit, Function) else id(unit)
