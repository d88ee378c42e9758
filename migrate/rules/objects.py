"""The models, optimizers, loaders and schedulers of a run: what they are called first, and what made them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value

MOST = 4  # classes that are named for one object
WANTED = (Role.MODEL, Role.OPTIMIZER, Role.LOADER, Role.SCHEDULER)


@dataclass(frozen=True, slots=True)
class Object:
    """Something that was made at one place."""

    target: str  # the first name that it is given: "model", "self.model"
    statement: ast.stmt  # that gives it this name
    values: tuple[Value, ...]  # what it may be


class Objects:
    """By where they were made."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    @cached_property
    def known(self) -> dict[ast.AST, Object]:
        """Where each object was made → the first name it is given, and what it may be."""
        found: dict[ast.AST, Object] = {}
        for binding in self._facts.bindings:
            mine = [v for v in binding.values if v.role in WANTED and v.origin is not None]
            for origin in dict.fromkeys(v.origin for v in mine if v.origin not in found):
                assert origin is not None
                values = tuple(value for value in mine if value.origin is origin)
                found[origin] = Object(binding.target, binding.statement, values)
        return found

    def made(self, origins: Iterable[ast.AST], role: Role) -> str:
        """What made objects, in a word; nothing for loaders, whose class says nothing."""
        return classes((value for origin in origins for value in self._values(origin)), role)

    def _values(self, origin: ast.AST) -> tuple[Value, ...]:
        return self.known[origin].values if origin in self.known else ()


def classes(values: Iterable[Value], role: Role) -> str:
    """What made the values, in a word; nothing for loaders, whose class says nothing."""
    if role is Role.LOADER:
        return ""
    names = sorted({_last(value.name) for value in values if value.name})
    more = f" or {len(names) - MOST} more" if len(names) > MOST else ""
    return " or ".join(names[:MOST]) + more


def _last(name: str) -> str:
    """A class in a word: nn.Linear → Linear, AutoModel.from_pretrained → AutoModel; a function keeps its brackets."""
    parts = [part for part in name.split(".") if part != "<any>"] or [name]
    if name.endswith("<any>"):
        return f"any of {parts[-1]}"
    if parts[-1][:1].isupper():
        return parts[-1]
    return parts[-2] if len(parts) > 1 and parts[-2][:1].isupper() else f"{parts[-1]}()"
