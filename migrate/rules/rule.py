"""What a rule is: a code, a name, a function from decisions to edits. Its module's docstring documents it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.codes import NAMES

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

Apply = Callable[["Conversion", "Draft"], None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of edit. A program is converted by all of them or not at all, except those that are `optional`."""

    code: str
    name: str
    apply: Apply
    optional: bool
    module: str

    @property
    def documentation(self) -> str:
        """The module's docstring: what is found, what it becomes, what is left alone, and why it is safe."""
        return (sys.modules[self.module].__doc__ or "").strip()

    @property
    def summary(self) -> str:
        """The first line of the documentation, without the rule's name."""
        return self.documentation.splitlines()[0].partition(": ")[2]


def rule(code: str, *, optional: bool = False) -> Callable[[Apply], Rule]:
    """Make a rule of a function; its name is that of its code."""

    def make(apply: Apply) -> Rule:
        return Rule(code, NAMES[code], apply, optional, apply.__module__)

    return make
