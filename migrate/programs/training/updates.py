"""What changes the parameters: a step of an optimizer, arithmetic written by hand, or something that is not seen.

A loop with a backward and without any of these only looks at gradients. What is not proven to be an optimizer is told
apart by the way it is used, so that a report can say what is missing; only `How.OPTIMIZER` is proven.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.entrances import are_apart
from migrate.analysis.known import amp
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import arguments, same, walk
from migrate.analysis.units import Function
from migrate.programs.values.sources import passed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value, Values
    from migrate.analysis.units import Unit


class How(str, Enum):
    """By what the parameters are changed."""

    OPTIMIZER = "an optimizer"
    BY_HAND = "arithmetic on the gradients, written by hand"
    LIBRARY = "an object of a library that is not known here"
    REMOTE = "another process (torch.distributed.rpc)"
    UNSEEN = "an optimizer that is made where it is not seen"


@dataclass(frozen=True, slots=True)
class Update:
    """One call or statement that changes parameters; `optimizers` is where the objects that do it were made."""

    node: ast.AST
    how: How
    optimizers: frozenset[ast.AST] = frozenset()
    name: str = ""  # of the library's class, where it is known


#: In-place methods of tensors that a hand-written update is made with.
_IN_PLACE = frozenset("add_ sub_ addcmul_ addcdiv_ copy_ set_ lerp_ mul_".split())
_REMOTE = ("torch.distributed.rpc",)


class Updates:
    """The updates of a program, and which of them a piece of code reaches."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._reached: dict[ast.AST, tuple[Update, ...]] = {}

    def reached(self, node: ast.AST) -> tuple[Update, ...]:
        """The updates that code makes, itself or through the functions that it enters."""
        if node not in self._reached:
            units = self.functions(node)
            found = dict.fromkeys(self._own(node))
            found.update(dict.fromkeys(update for unit in units for update in self._of_unit.get(unit, ())))
            handed = _Optimizers(self._facts, node, units)
            self._reached[node] = tuple(handed.narrowed(update) for update in self._outermost(node, found))
        return self._reached[node]

    def functions(self, node: ast.AST) -> list[Function]:
        """The functions of the project that code enters, directly or not."""
        found = {unit: None for inner in walk(node) for unit in self.entered.get(inner, ())}
        waiting = list(found)
        while waiting:
            for unit in self._entered_by.get(waiting.pop(), ()):
                if unit not in found:
                    found[unit] = None
                    waiting.append(unit)
        return list(found)

    @cached_property
    def _entered_by(self) -> dict[Unit, list[Function]]:
        """Each unit with the functions that it enters itself."""
        found: dict[Unit, list[Function]] = {}
        for unit in self._facts.functions:
            for call in unit.calls.values():
                found.setdefault(call.caller, []).append(unit)
        return found

    @cached_property
    def entered(self) -> dict[ast.AST, list[Function]]:
        """Each call with the functions of the project that it enters: also through an object that is called."""
        found: dict[ast.AST, list[Function]] = {}
        for unit in self._facts.functions:
            for call in unit.calls:
                found.setdefault(call, []).append(unit)
        return found

    def _outermost(self, node: ast.AST, found: dict[Update, None]) -> Iterator[Update]:
        """What an optimizer of the project does inside of its own step is its business."""
        steps = [u for u in found if u.how is How.OPTIMIZER and self.entered.get(u.node)]
        hidden = {
            inner for step in steps for unit in self.functions(step.node) for inner in self._of_unit.get(unit, ())
        }
        return (update for update in found if update not in hidden)

    def _own(self, node: ast.AST) -> Iterator[Update]:
        return (update for inner in walk(node) for update in self._at.get(inner, ()))

    @cached_property
    def _at(self) -> dict[ast.AST, list[Update]]:
        found: dict[ast.AST, list[Update]] = {}
        for update in self._all:
            found.setdefault(update.node, []).append(update)
        return found

    @cached_property
    def _of_unit(self) -> dict[Function, list[Update]]:
        found: dict[Function, list[Update]] = {}
        for update in self._all:
            unit = self._facts.unit(update.node)
            if isinstance(unit, Function):
                found.setdefault(unit, []).append(update)
        return found

    @cached_property
    def _all(self) -> tuple[Update, ...]:
        found: list[Update] = []
        for use in self._facts.calls_anywhere:
            update = self._of_call(use.node)
            if update is not None:
                found.append(update)
        for module in self._facts.modules:
            if b".grad" in module.file.content:
                found += [
                    Update(node, How.BY_HAND) for node in self._facts.tree(module.tree).nodes if _is_by_hand(node)
                ]
        return tuple(found) + tuple(self._of_project_optimizers(found))

    def _of_call(self, call: ast.Call) -> Update | None:
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
            return self._of_other_call(call)
        receiver = self._facts.receiver(call)
        if made := origins(receiver, Role.OPTIMIZER):
            return Update(call, How.OPTIMIZER, frozenset(made))
        if Role.SCALER in roles(receiver):
            return self._scaled(call, 0)
        written = walk(call.func.value).of(ast.expr)
        if any(value.name.startswith(_REMOTE) for inner in written for value in self._facts.values(inner)):
            return Update(call, How.REMOTE)
        return self._of_stranger(call, receiver)

    def _of_other_call(self, call: ast.Call) -> Update | None:
        values = self._facts.values(call.func)
        if any(value.role is Role.KNOWN and value.name.startswith(_REMOTE) for value in values):
            return Update(call, How.REMOTE) if self._hands_over_gradients(call) else None
        if any(value.name in amp.STEPS_WHEN_CALLED for value in values):
            return self._scaled(call, 1)
        return None

    def _scaled(self, call: ast.Call, position: int) -> Update | None:
        """`scaler.step(optimizer)`, `loss_scaler(loss, optimizer)`."""
        if len(call.args) <= position:
            return None
        made = origins(self._facts.values(call.args[position]), Role.OPTIMIZER)
        return Update(call, How.OPTIMIZER, frozenset(made)) if made else Update(call, How.UNSEEN)

    def _hands_over_gradients(self, call: ast.Call) -> bool:
        return any(_is_gradient(inner) for inner in walk(call))

    def _of_stranger(self, call: ast.Call, receiver: Values) -> Update | None:
        """`x.step()` of something unknown: by what it was made from, else where gradients are cleared, too."""
        assert isinstance(call.func, ast.Attribute)
        made = {v.origin: v.name for v in receiver if isinstance(v.origin, ast.Call) and v.name.count(".")}
        for value in receiver:
            if value.origin in made and self._is_made_from_parameters(value):
                return Update(call, How.LIBRARY, frozenset({value.origin}), value.name)
        if roles(receiver) - {Role.UNKNOWN} or any(value.unit is not None for value in receiver):
            return None
        if not receiver and not call.args:
            return Update(call, How.UNSEEN)
        cleared = self._cleared.get(self._facts.module(call).path, set())
        if not cleared or (call.args and ast.unparse(call.func.value) not in cleared):
            return None
        if len(made) == 1:
            (origin, name), *_ = made.items()
            return Update(call, How.LIBRARY, frozenset({origin}), name)
        return Update(call, How.UNSEEN)

    def _is_made_from_parameters(self, value: Value) -> bool:
        """Whether parameters of a model went into a call, directly or in lists and dictionaries of groups."""
        assert isinstance(value.origin, ast.Call)
        given = arguments(value.origin)
        names = {name for argument in given for name in self._facts.names(argument)}
        if any(name.startswith("torch.optim.") for name in names):
            return True
        return any(self._holds_parameters(self._facts.values(argument)) for argument in given)

    def _holds_parameters(self, values: Values, depth: int = 2) -> bool:
        if Role.PARAMETERS in roles(values):
            return True
        containers = origins(values, Role.CONTAINER) if depth else ()
        inside = (self._facts.values(node) for made in containers for node in walk(made))
        return any(self._holds_parameters(found, depth - 1) for found in inside)

    @cached_property
    def _cleared(self) -> dict[str, set[str]]:
        """What has its gradients cleared in each module, as it is written."""
        found: dict[str, set[str]] = {}
        for use in self._facts.calls_anywhere:
            if isinstance(use.node.func, ast.Attribute) and use.node.func.attr == "zero_grad":
                found.setdefault(use.unit.module.path, set()).add(ast.unparse(use.node.func.value))
        return found

    def _of_project_optimizers(self, known: list[Update]) -> Iterator[Update]:
        """`optimizer.second_step()`: another method of an optimizer of the project that changes parameters."""
        changing = {id(self._facts.unit(update.node)) for update in known}
        for use in self._facts.calls_anywhere:
            made = origins(self._facts.receiver(use.node), Role.OPTIMIZER)
            is_step = isinstance(use.node.func, ast.Attribute) and use.node.func.attr == "step"
            if made and not is_step and any(id(unit) in changing for unit in self.entered.get(use.node, ())):
                yield Update(use.node, How.OPTIMIZER, frozenset(made))


#: Where the optimizers were made that a parameter is given, as far as it was asked for.
_Given = dict[tuple[Function, str], frozenset[ast.AST]]


class _Optimizers:
    """Which optimizers a piece of code hands to the functions that it enters.

    A function that steps what it is given may be called from several programs; each has its own optimizer. So has each
    object of a class of the project that steps one which it is given.
    """

    def __init__(self, facts: Facts, node: ast.AST, units: list[Function]) -> None:
        self._facts = facts
        self._node = node
        self._units = set(units)
        inside = set(walk(node)) if any(unit.calls for unit in units) else set()
        self._calls = {
            unit: [call for call in unit.calls.values() if call.node in inside or call.caller in self._units]
            for unit in units
        }

    def narrowed(self, update: Update) -> Update:
        """An update with the optimizers that come in through the parameter it steps, where there is one.

        Those that only another script makes do not come in.
        """
        call = update.node
        if len(update.optimizers) > 1:
            home = self._facts.unit(self._node)
            near = {made for made in update.optimizers if not are_apart(self._facts, self._facts.unit(made), home)}
            update = replace(update, optimizers=frozenset(near)) if near else update
        if (
            update.how is not How.OPTIMIZER
            or not isinstance(call, ast.Call)
            or not isinstance(call.func, ast.Attribute)
        ):
            return update
        stepped, unit = call.func.value, self._facts.unit(call)
        if not isinstance(stepped, ast.Name) or unit not in self._units or not isinstance(unit, Function):
            return update
        made = self._given(unit, stepped.id, {})
        return replace(update, optimizers=update.optimizers & made) if made & update.optimizers else update

    def _given(self, unit: Function, name: str, known: _Given) -> frozenset[ast.AST]:
        """Where the optimizers were made that a parameter is given; empty: it is not seen for each call."""
        if (unit, name) not in known:
            known[unit, name] = frozenset()  # as long as it is given by itself
            known[unit, name] = self._looked_for(unit, name, known)
        return known[unit, name]

    def _looked_for(self, unit: Function, name: str, known: _Given) -> frozenset[ast.AST]:
        if any(b.target == name for b in self._facts.bindings_in(unit)):
            return frozenset()
        found: frozenset[ast.AST] = frozenset()
        for call in self._calls[unit]:
            argument = passed(call, unit, name)
            if argument is None:
                return frozenset()
            made = self._made(argument, call.caller, known)
            if not made:
                return frozenset()
            found |= made
        return found

    def _made(self, argument: ast.expr, caller: Unit, known: _Given) -> frozenset[ast.AST]:
        if isinstance(argument, ast.Name) and isinstance(caller, Function) and caller in self._units:
            if argument.id in caller.parameter_names:
                return self._given(caller, argument.id, known)
        return frozenset(origins(self._facts.values(argument), Role.OPTIMIZER))


def _is_by_hand(node: ast.AST) -> bool:
    """`p.data -= lr * p.grad`, `p.data.add_(-lr * p.grad)`, `p.data = p.data - lr * p.grad`."""
    target, given = _written(node)
    if target is None or _is_gradient(target):
        return False
    owner = _owner(target)
    return any(
        isinstance(inner, ast.Attribute) and inner.attr == "grad" and same(_owner(inner.value), owner)
        for value in given
        for inner in walk(value)
    )


def _written(node: ast.AST) -> tuple[ast.expr | None, list[ast.expr]]:
    """What a node changes in place, and what goes in."""
    if isinstance(node, ast.AugAssign):
        return node.target, [node.value]
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return node.targets[0], [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _IN_PLACE:
        return node.func.value, arguments(node)
    return None, []


def _owner(node: ast.expr) -> ast.expr:
    """The parameter that `p.data` belongs to."""
    while isinstance(node, ast.Attribute) and node.attr in ("data", "grad"):
        node = node.value
    return node


def _is_gradient(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Attribute) and inner.attr == "grad" for inner in walk(node))
