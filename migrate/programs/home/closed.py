"""Objects that take no new attributes: prepare gives them others, and the accelerator is one more.

@dataclass(slots=True)     # self.accelerator = Accelerator()            AttributeError
@dataclass(frozen=True)    # self.model = self.accelerator.prepare(...)  FrozenInstanceError

Classes say so by what decorates them, or by `__slots__`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.units import Class, Function
from migrate.programs.program import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.home.naming import Named
    from migrate.programs.program import Program


def closed(facts: Facts, program: Program) -> Iterator[Refusal]:
    """The objects that would hold the accelerator, or what is prepared, and take no such attribute."""
    start, home = program.start, program.home
    if isinstance(start, Function) and start.owner is not None and start.has_object:
        for cls in _classes_of(start.owner):
            if _has_slots(cls):
                why = f"objects of {cls.name} have slots, and none for the accelerator"
                yield Refusal(cls.node, "MIG104", why, f"take the slots off {cls.name}")
    held = [each for each in (*program.models, *program.optimizers, *program.loaders) if "." in each.target]
    own = home.owner if isinstance(home, Function) and home.has_object else None
    owners = {cls for each in held for cls in _owners(facts, each, own)}
    for cls in sorted(filter(_is_frozen, owners), key=lambda each: each.node.lineno):
        why = f"objects of {cls.name} are frozen, so what is prepared cannot take the place of what they hold"
        yield Refusal(cls.node, "MIG104", why, f"take `frozen` off {cls.name}, or prepare before it is made")


def _classes_of(cls: Class) -> Iterator[Class]:
    found = {value.unit for value in cls.instances if isinstance(value.unit, Class)} or {cls}
    yield from sorted(found, key=lambda each: (each.module.path, each.node.lineno))


def _owners(facts: Facts, named: Named, own: Class | None) -> Iterator[Class]:
    """The classes of the objects that have something as an attribute."""
    if named.target.startswith("self.") and own is not None and named.unit is None:
        yield from _classes_of(own)
    for holder in named.holders:
        yield from (v.unit for v in facts.values(holder) if v.origin is holder and isinstance(v.unit, Class))


def _has_slots(cls: Class) -> bool:
    """Whether objects have the attributes that their class names, and no other: so must all that it derives from."""
    is_alone = cls.library_bases() <= {"builtins.object"}
    return is_alone and all("__slots__" in each.names or _says(each, "slots") for each in cls.mro())


def _is_frozen(cls: Class) -> bool:
    return any(_says(each, "frozen") for each in cls.mro())


def _says(cls: Class, word: str) -> bool:
    """`@dataclass(frozen=True)`."""
    calls = (each for each in cls.node.decorator_list if isinstance(each, ast.Call))
    given = (keyword for call in calls for keyword in call.keywords if keyword.arg == word)
    return any(not isinstance(each.value, ast.Constant) or bool(each.value.value) for each in given)
