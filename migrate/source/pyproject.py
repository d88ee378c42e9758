"""`[tool.migrate]` in the project's pyproject.toml. docs/configuration.md says what each key means."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrate.errors import UsageError, reason_of

NAME = "pyproject.toml"
ISOLATED = ""  # the name of the file where none is to be read
_WORD = b"migrate"  # a file without it has no [tool.migrate], however it is written


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_texts_by_name(value: object) -> bool:
    return isinstance(value, dict) and all(map(_are_texts, value.values()))


def _is_table(value: object) -> bool:
    return isinstance(value, dict)


#: What may stand in the section, and as what.
KEYS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "target": (_is_text, '"runtime" or "accelerate"'),
    "for": (_is_text, '"tpu"'),
    "select": (_are_texts, 'a list of codes or names, such as ["MIG1", "prepare"]'),
    "ignore": (_are_texts, 'a list of codes or names, such as ["MIG117"]'),
    "review": (_is_flag, "true or false"),
    "exclude": (_are_texts, 'a list of patterns, such as ["legacy/*", "*_old.py"]'),
    "force-exclude": (_is_flag, "true or false"),
    "respect-gitignore": (_is_flag, "true or false"),
    "per-file-ignores": (_are_texts_by_name, 'a table of lists, such as { "legacy/*" = ["MIG001"] }'),
    "baseline": (_is_text, "the path of a file"),
    "cache-dir": (_is_text, "the path of a folder"),
    "known": (_is_table, "a table: docs/tables.md"),
}


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
        return _of(Path(named).absolute(), named) or Settings(named, Path(named).absolute().parent, {})
    path = _nearest(sorted({folder.resolve() for folder in set(folders)}))
    return _of(path, _shown(path)) if path else None


def _of(path: Path, shown: str) -> Settings | None:
    """The section of a file; None if it has none."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(shown, error) from error
    tools = _read(content, shown).get("tool") if _WORD in content else None
    if not isinstance(tools, dict) or "migrate" not in tools:
        return None
    table = tools["migrate"]
    if not isinstance(table, dict):
        raise UsageError(f"tool.migrate is {table!r}, no table", f"Allowed: {', '.join(KEYS)}.", path=shown)
    for key, value in table.items():
        _checked(key, value, shown)
    return Settings(shown, path.parent, table)


def _checked(key: str, value: object, shown: str) -> None:
    if key not in KEYS:
        import difflib  # only for those who have mistyped

        close = difflib.get_close_matches(key.replace("_", "-"), KEYS, n=1)
        meant = f"Did you mean {close[0]!r}? " if close else ""
        raise UsageError(f"[tool.migrate] holds {key!r}", f"{meant}Allowed: {', '.join(KEYS)}.", path=shown)
    is_right, expected = KEYS[key]
    if not is_right(value):
        raise UsageError(f"[tool.migrate] {key} is {value!r}", f"It should be {expected}.", path=shown)


def _nearest(folders: list[Path]) -> Path | None:
    if not folders:
        return None
    is_one_drive = len({folder.anchor for folder in folders}) == 1
    common = Path(os.path.commonpath(folders)) if is_one_drive else folders[0]
    return next((path for place in (common, *common.parents) if (path := place / NAME).is_file()), None)


def _shown(path: Path) -> str:
    return os.path.relpath(path) if path.is_relative_to(Path.cwd().resolve()) else str(path)


def _read(content: bytes, shown: str) -> dict[str, Any]:
    # By name: of the two only one is installed.
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        document: dict[str, Any] = toml.loads(content.decode())
    except ValueError as error:  # what is no TOML or no UTF-8 is a ValueError
        raise _unreadable(shown, error) from error
    return document


def _unreadable(shown: str, error: Exception) -> UsageError:
    way_out = "Name another file." if isinstance(error, OSError) else "Mend it, or read none: --isolated."
    return UsageError(f"it cannot be read: {reason_of(error)}", way_out, path=shown)
