"""The section `[tool.migrate]` of a pyproject.toml: which file, what may stand in it, and that it is in order.

Hooks wait for this, so nothing is imported that takes longer than reading a small file.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from migrate.errors import UsageError, reason_of

NAME = "pyproject.toml"
_SECTION = "migrate"


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


#: Keys whose value is one of a few words; for each a class of `migrate/options.py` has the same words.
CHOICES: Mapping[str, tuple[str, ...]] = {"target": ("runtime", "accelerate"), "for": ("tpu",)}
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


def nearest(folders: Iterable[str]) -> str | None:
    """The pyproject.toml at or above all of these folders, which are absolute and without links; None without one."""
    places = sorted(set(folders))
    if not places:
        return None
    is_one_drive = len({os.path.splitdrive(place)[0] for place in places}) == 1
    place = os.path.commonpath(places) if is_one_drive else places[0]
    while not os.path.isfile(path := os.path.join(place, NAME)):
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above
    return path


def section(path: str, shown: str) -> Mapping[str, Any] | None:
    """What the section of a file holds; None if it has none. Messages call the file as it is `shown`.

    Raises:
        UsageError: the file cannot be read, or the section holds what does not exist.
    """
    try:
        with open(path, "rb") as stream:
            content = stream.read()
    except OSError as error:
        raise _unreadable(shown, error) from error
    # A file without the word has no such section, however it is written.
    tools = _read(content, shown).get("tool") if _SECTION.encode() in content else None
    if not isinstance(tools, dict) or _SECTION not in tools:
        return None
    table = tools[_SECTION]
    if not isinstance(table, dict):
        raise UsageError(f"tool.migrate is {table!r}, no table", f"Allowed: {', '.join(KEYS)}.", path=shown)
    for key, value in table.items():
        _check(key, value, shown)
    return table


def _check(key: str, value: object, shown: str) -> None:
    if key not in KEYS:
        import difflib  # only for those who have mistyped

        close = difflib.get_close_matches(key.replace("_", "-"), KEYS, n=1)
        meant = f"Did you mean {close[0]!r}? " if close else ""
        raise UsageError(f"[tool.migrate] holds {key!r}", f"{meant}Allowed: {', '.join(KEYS)}.", path=shown)
    is_right, expected = KEYS[key]
    if not is_right(value):
        raise UsageError(f"[tool.migrate] {key} is {value!r}", f"It should be {expected}.", path=shown)


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
