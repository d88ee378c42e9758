"""The files that a plan is made for."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from migrate.source.address import Index


class EditableFile(Protocol):
    """What the plan needs to know of a file. `SourceFile` and `PlannedFile` both are one."""

    @property
    def path(self) -> str: ...
    @property
    def tree(self) -> ast.Module: ...
    @property
    def index(self) -> Index: ...
    @property
    def content(self) -> bytes: ...


@dataclass(frozen=True, eq=False, slots=True)
class PlannedFile:
    """A parsed file."""

    path: str
    tree: ast.Module
    index: Index
    content: bytes
