"""What a program saves with `torch.save`, and what it does with what `torch.load` gives.

A checkpoint is a state dict, a whole model, or a dictionary of parts under keys. Of each part it is told what it is and
of which object; of a loaded one where its tensors go, which keys are read, and which object takes which part.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins, roles
from migrate.programs.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Unit

SAVE, LOAD = frozenset({"torch.save"}), frozenset({"torch.load"})


class Content(str, Enum):
    """What a part of a checkpoint is."""

    MODEL_STATE = "the state of a model"
    MODEL = "a whole model"
    OPTIMIZER_STATE = "the state of an optimizer"
    SCHEDULER_STATE = "the state of a scheduler"
    SCALER_STATE = "the state of a grad scaler"
    VALUE = "a number or text"
    OTHER = "something else"


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its key (None: the checkpoint itself), what it is, of which object, as it is written."""

    key: str | None
    content: Content
    origins: frozenset[ast.AST]
    through_module: bool  # `model.module.state_dict()`: the keys have no prefix of a wrapper
    node: ast.expr


@dataclass(frozen=True, slots=True)
class Saved:
    """A call of `torch.save`; `complete` if no other parts can be in it."""

    node: ast.Call
    unit: Unit
    parts: tuple[Part, ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class Restored:
    """`object.load_state_dict(part)`: the call, the object's role and origins, the key of the part."""

    node: ast.Call
    roles: frozenset[Role]
    origins: frozenset[ast.AST]
    key: str | None
    through_module: bool
    strict: bool


@dataclass(frozen=True, slots=True)
class Loaded:
    """A call of `torch.load`; `map_location` is the expression that is given for it."""

    node: ast.Call
    unit: Unit
    map_location: ast.expr | None
    restored: tuple[Restored, ...]
    keys: frozenset[str]


_STATES = {
    Role.MODEL: Content.MODEL_STATE,
    Role.OPTIMIZER: Content.OPTIMIZER_STATE,
    Role.SCHEDULER: Content.SCHEDULER_STATE,
    Role.SCALER: Content.SCALER_STATE,
}
_VALUES = frozenset({Role.NUMBER, Role.TEXT, Role.STATISTIC})


class Checkpoints:
    """The checkpoints of a program."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._sources = Sources(facts)

    @cached_property
    def saved(self) -> tuple[Saved, ...]:
        """Every call of `torch.save`."""
        return tuple(
            self._saved(use.node, use.unit) for use in self._calls(SAVE) if _first(use.node, "obj") is not None
        )

    @cached_property
    def loaded(self) -> tuple[Loaded, ...]:
        """Every call of `torch.load`."""
        return tuple(self._loaded(use.node, use.unit) for use in self._calls(LOAD))

    def _calls(self, names: frozenset[str]) -> list[Use]:
        return [use for use in self._facts.calls_anywhere if self._facts.called(use.node) & names]

    # --- saved ------------------------------------------------------------------------------------------------------

    def _saved(self, call: ast.Call, unit: Unit) -> Saved:
        given = _first(call, "obj")
        assert given is not None
        written = self._written(given)
        if len(written) == 1 and isinstance(written[0], ast.Dict):
            parts, complete = self._of_dict(written[0])
            parts += [part for key, value in self._added(given) for part in self._parts(key, value)]
            return Saved(call, unit, tuple(parts), complete)
        parts = [part for node in written for part in self._parts(None, node)]
        return Saved(call, unit, tuple(parts), complete=len(written) == 1)

    def _written(self, node: ast.expr) -> list[ast.expr]:
        """What a name stands for, where that is known; else itself."""
        given = self._sources.given(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if given is None or not given.complete or not given.expressions:
            return [node]
        return list(given.expressions)

    def _of_dict(self, node: ast.Dict) -> tuple[list[Part], bool]:
        parts: list[Part] = []
        complete = True
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                parts += self._parts(str(key.value), value)
            else:
                complete = False
        return parts, complete

    def _added(self, name: ast.expr) -> Iterator[tuple[str, ast.expr]]:
        """`checkpoint["x"] = y`, in the unit that saves it."""
        for node in self._facts.own(self._facts.unit(name)):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                target = node.targets[0]
                if isinstance(target.slice, ast.Constant) and ast.unparse(target.value) == ast.unparse(name):
                    yield str(target.slice.value), node.value

    def _parts(self, key: str | None, node: ast.expr) -> list[Part]:
        """The parts that an expression may be: two for `a.state_dict() if x else b.state_dict()`."""
        if isinstance(node, ast.IfExp):
            return [*self._parts(key, node.body), *self._parts(key, node.orelse)]
        inner = self._written(node) if isinstance(node, ast.Name) else [node]
        return [self._part(key, written) for written in inner]

    def _part(self, key: str | None, node: ast.expr) -> Part:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "state_dict":
            owner = node.func.value
            values = self._facts.values(owner)
            found = {_STATES[role] for role in roles(values) if role in _STATES}
            content = found.pop() if len(found) == 1 else Content.OTHER
            return Part(key, content, frozenset(origins(values, *_STATES)), self._is_unwrapped(owner), node)
        values = self._facts.values(node)
        if Role.MODEL in roles(values):
            return Part(key, Content.MODEL, frozenset(origins(values, Role.MODEL)), self._is_unwrapped(node), node)
        is_value = isinstance(node, ast.Constant) or (bool(values) and roles(values) <= _VALUES)
        return Part(key, Content.VALUE if is_value else Content.OTHER, frozenset(), False, node)

    def _is_unwrapped(self, owner: ast.expr) -> bool:
        return any(isinstance(written, ast.Attribute) and written.attr == "module" for written in self._written(owner))

    # --- loaded -----------------------------------------------------------------------------------------------------

    def _loaded(self, call: ast.Call, unit: Unit) -> Loaded:
        location = next((k.value for k in call.keywords if k.arg == "map_location"), None)
        if location is None and len(call.args) > 1:
            location = call.args[1]
        restored = tuple(found for use in self._restoring if (found := self._restored(use, call)) is not None)
        return Loaded(call, unit, location, restored, frozenset(self._keys(call)))

    @cached_property
    def _restoring(self) -> list[ast.Call]:
        return [
            use.node
            for use in self._facts.calls_anywhere
            if isinstance(use.node.func, ast.Attribute) and use.node.func.attr == "load_state_dict" and use.node.args
        ]

    def _restored(self, call: ast.Call, load: ast.Call) -> Restored | None:
        """The restoring of one part of one loaded checkpoint."""
        assert isinstance(call.func, ast.Attribute)
        given = call.args[0]
        if load not in origins(self._facts.values(given), Role.CHECKPOINT):
            return None
        receiver = self._facts.receiver(call)
        strict = next((k.value for k in call.keywords if k.arg == "strict"), call.args[1] if call.args[1:] else None)
        return Restored(
            call,
            frozenset(roles(receiver)),
            frozenset(origins(receiver, *_STATES)),
            self._key(given),
            self._is_unwrapped(call.func.value),
            not (isinstance(strict, ast.Constant) and strict.value is False),
        )

    def _key(self, node: ast.expr) -> str | None:
        """The key under which a part was read."""
        for written in self._written(node):
            if isinstance(written, ast.Subscript) and isinstance(written.slice, ast.Constant):
                return str(written.slice.value)
        return None

    def _keys(self, load: ast.Call) -> Iterator[str]:
        for module in self._facts.modules:
            for node in self._facts.tree(module.tree).nodes:
                if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
                    if load in origins(self._facts.values(node.value), Role.CHECKPOINT):
                        yield str(node.slice.value)


def _first(call: ast.Call, keyword: str) -> ast.expr | None:
    named = next((k.value for k in call.keywords if k.arg == keyword), None)
    return call.args[0] if call.args and not isinstance(call.args[0], ast.Starred) else named
