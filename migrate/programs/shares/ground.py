"""What is done under a test that all processes must do together, or alike; and where trails of values have been."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.members import decorators
from migrate.analysis.roles import Role, roles
from migrate.analysis.units import Function, Module
from migrate.programs.processes.alike import Alike, makes_optimizer, sets_rate
from migrate.programs.processes.duties import ends_well

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.shares.trail import Trail

_LEAVING: dict[type[ast.AST], str] = {
    ast.Break: "`break`",
    ast.Continue: "`continue`",
    ast.Return: "`return`",
    ast.Raise: "`raise`",
}
_SAVING = frozenset({"torch.save"})
#: What may be done with a model, an optimizer or a scheduler by one process alone.
_LOOKING = frozenset("state_dict parameters named_parameters zero_grad train eval get_last_lr".split())
DEEPEST = 5  # calls that are entered one inside of another


@dataclass(frozen=True, slots=True)
class Decision:
    """Something done, or not, by a name that differs from process to process."""

    node: ast.AST
    what: str
    name: str
    test: ast.expr | None = None  # where it is a test that decides


class _Read:
    """What is read in the files that may be edited."""

    def __init__(self, facts: Facts) -> None:
        self.attributes: dict[str, list[ast.Attribute]] = {}
        self.names: set[str] = set()  # and attributes
        for module in facts.editable:
            for node in facts.tree_of(module).nodes:
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    self.attributes.setdefault(node.attr, []).append(node)
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    self.names.add(node.id)
        self.names |= self.attributes.keys()


class Ground:
    """What trails of one program share: its facts, and where they have been."""

    def __init__(self, facts: Facts, loops: Loops) -> None:
        self.facts = facts
        self.loops = loops
        self.left: dict[tuple[ast.AST, frozenset[str]], Trail] = {}  # what is entered, and with which own names

    @property
    def attributes(self) -> dict[str, list[ast.Attribute]]:
        """Where attributes are read, by their names."""
        return self.facts.once(_Read).attributes

    def is_idle(self, unit: Unit) -> bool:
        """Whether nothing that is seen calls a function, or names it."""
        if not isinstance(unit, Function) or is_property(unit) or unit.name.startswith("__"):
            return False
        return not self.facts.callers(unit) and unit.name not in self.facts.once(_Read).names

    def trains(self, unit: Unit) -> bool:
        """Whether a unit comes to a training step: to leave it early is to miss some."""
        return self.loops.trains(root_of(unit))

    def reaches_model(self, call: ast.Call, depth: int = DEEPEST) -> bool:
        """Whether a call trains, or comes to a call of a model: all processes must enter it together."""
        if self.loops.trains(call) or self.loops.calls_model(call):
            return True
        return depth > 0 and any(
            self.reaches_model(inner, depth - 1)
            for target in self.facts.targets(call)
            for inner in self.facts.own(target)
            if isinstance(inner, ast.Call) and inner is not call
        )

    def done(self, unit: Unit, parts: Iterable[ast.AST], *, in_step: bool = False) -> str | None:
        """What code does that all processes must do together, or alike; in a step what needs it there."""
        is_leaving = self.trains(unit)
        for inner in (node for part in parts for node in ast.walk(part)):
            if is_leaving and type(inner) in _LEAVING:
                return _LEAVING[type(inner)]
            if isinstance(inner, ast.Call) and (self._alike.is_done([inner]) if in_step else self._is_for_all(inner)):
                return f"{ast.unparse(inner.func)}()"
            if isinstance(inner, (ast.Assign, ast.AugAssign)) and sets_rate(inner):
                return "the learning rate"
        return None

    @cached_property
    def _alike(self) -> Alike:
        return Alike(self.facts, (loop.node for loop in self.loops.evaluation))

    def _is_for_all(self, call: ast.Call) -> bool:
        return self._saves(call) or makes_optimizer(self.facts, call) or self._is_common(call)

    def _saves(self, call: ast.Call) -> bool:
        """Whether a call saves, or ends the program as if it were done, itself or in a function of the project."""
        inside = (node for unit in self.facts.targets(call) for node in ast.walk(unit.node))
        calls = (node for node in (call, *inside) if isinstance(node, ast.Call))
        return any(self.facts.called(each) & _SAVING or ends_well(self.facts, each) for each in calls)

    def _is_common(self, call: ast.Call) -> bool:
        """Whether all processes must make a call: it changes what is trained, or runs the model."""
        changed = roles(self.facts.receiver(call)) & {Role.MODEL, Role.OPTIMIZER, Role.SCHEDULER}
        if changed and isinstance(call.func, ast.Attribute) and call.func.attr not in _LOOKING:
            return True
        return self.reaches_model(call)


def root_of(unit: Unit) -> ast.AST:
    return unit.tree if isinstance(unit, Module) else unit.node


def is_property(method: Function) -> bool:
    """Whether a method is read like an attribute."""
    return any(name.endswith("property") for name in decorators(method))
