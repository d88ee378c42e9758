"""`[tool.migrate]` in the project's pyproject.toml. docs/configuration.md says what each key means."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.source.section import nearest, section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

ISOLATED = ""  # the name of the file where none is to be read


@dataclass(frozen=True, slots=True)
class Settings:
    """What `[tool.migrate]` says; `path` is the file, as messages show it."""

    path: str
    folder: Path  # where the file lies: what paths and patterns in it are relative to
    table: Mapping[str, Any]

    @property
    def known(self) -> Mapping[str, Any]:
        """What the project says of libraries, as a section of its own."""
        return {"known": self.table["known"]} if "known" in self.table else {}

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty where the key is not there."""
        return tuple(self.table.get(key, ()))

    def flag(self, key: str) -> bool:
        """A yes or no that is there."""
        return bool(self.table[key])


def settings(folders: Iterable[Path], named: str | None = None) -> Settings | None:
    """The settings for files in these folders: of the nearest pyproject.toml at or above all of them.

    `named` is the file to be read instead; `ISOLATED`: none.

    Raises:
        UsageError: the file cannot be read, or holds what does not exist.
    """
    if named == ISOLATED:
        return None
    if named is not None:
        path = Path(named).absolute()
        return Settings(named, path.parent, section(str(path), named) or {})
    found = nearest(str(folder.resolve()) for folder in set(folders))
    if found is None:
        return None
    shown = _shown(Path(found))
    table = section(found, shown)
    return Settings(shown, Path(found).parent, table) if table is not None else None


def _shown(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd().resolve()) else str(path)
