"""What a format is told beside the report: who speaks, and about which rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from migrate.options import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOL = "migrate"


class Documented(Protocol):
    """A rule, or a reason for which something is left."""

    @property
    def code(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def documentation(self) -> str: ...


@dataclass(frozen=True, slots=True)
class About:
    """The run that a document is about."""

    version: str
    mode: Mode = Mode.CHECK
    rules: Mapping[str, Documented] = field(default_factory=dict)  # by code

    def name(self, code: str) -> str:
        """What the rule of a code is called; the code where no rule has it."""
        rule = self.rules.get(code)
        return rule.name if rule else code
