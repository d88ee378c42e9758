"""`[tool.migrate]` in the project's pyproject.toml."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.errors import UsageError

NAME = "pyproject.toml"
SECTIONS = ("known",)


@dataclass(frozen=True, slots=True)
class Settings:
    """What `[tool.migrate]` says; `path` is the file, as messages show it."""

    path: str
    table: Mapping[str, Any]


def settings(folders: Iterable[Path]) -> Settings | None:
    """The settings for files in these folders: of the nearest pyproject.toml at or above all of them.

    Raises:
        UsageError: the file cannot be read, or holds sections that do not exist.
    """
    path = _nearest(sorted({folder.resolve() for folder in set(folders)}))
    if path is None:
        return None
    shown = os.path.relpath(path) if path.is_relative_to(Path.cwd().resolve()) else str(path)
    tools = _read(path, shown).get("tool")
    table = tools.get("migrate", {}) if isinstance(tools, dict) else {}
    if not isinstance(table, dict):
        raise UsageError(f"tool.migrate is {table!r}, no table", f"Allowed: {_allowed()}.", path=shown)
    for section in table:
        if section not in SECTIONS:
            raise UsageError(f"[tool.migrate] holds {section!r}", f"Allowed: {_allowed()}.", path=shown)
    return Settings(shown, table)


def _allowed() -> str:
    return ", ".join(f"[tool.migrate.{section}]" for section in SECTIONS)


def _nearest(folders: list[Path]) -> Path | None:
    if not folders:
        return None
    is_one_drive = len({folder.anchor for folder in folders}) == 1
    common = Path(os.path.commonpath(folders)) if is_one_drive else folders[0]
    return next((path for place in (common, *common.parents) if (path := place / NAME).is_file()), None)


def _read(path: Path, shown: str) -> dict[str, Any]:
    # By name: of the two only one is installed.
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        document: dict[str, Any] = toml.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # what is no TOML or no UTF-8 is a ValueError
        raise UsageError(
            f"it cannot be read: {error}", "migrate looks for [tool.migrate] in it.", path=shown
        ) from error
    return document
