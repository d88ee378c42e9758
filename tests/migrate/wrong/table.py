"""The wrong conversions of `conversions.toml` and the broken rules of `rules.toml`, read."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
OF_A_SETTING = ("fixture", "first", "arguments", "steps", "limit_s")


class TableError(ValueError):
    """An entry that says nothing, or something that is not so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """What is wrong: a text, and what stands in its place."""

    name: str
    part: str
    right: str
    wrong: str
    does: str

    def in_place_of(self, text: str) -> str:
        """The text with the mistake in it.

        Raises:
            TableError: the right text does not stand in it exactly once.
        """
        count = text.count(self.right)
        if count != 1:
            raise TableError(f"{self.name}: what is replaced stands there {count} times, not once: {self.right!r}")
        return text.replace(self.right, self.wrong)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A fixture, and how it is verified."""

    fixture: str
    processes: tuple[int, ...]
    first: tuple[str, ...] = ()  # the original is run once before, with these arguments
    arguments: tuple[str, ...] | None = None  # None: those of the fixture
    steps: int = 20
    limit_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongConversion(Replaced):
    """A mistake in the result of a fixture, which `--verify` must find."""

    setting: Setting
    fails: tuple[tuple[str, int], ...]  # code of a contract, and on how many processes
    file: str = "train.py"
    quick: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRule(Replaced):
    """A mistake in our own source, which a test of the suite must find."""

    file: str  # of the repository
    test: str  # the test that fails then
    fails: str  # the contract that conversions would break


def conversions() -> tuple[WrongConversion, ...]:
    """All of them, in the order of the table."""
    return tuple(_conversion(entry) for entry in _entries("conversions.toml"))


def rules() -> tuple[BrokenRule, ...]:
    """All of them, in the order of the table."""
    return tuple(BrokenRule(**entry) for entry in _entries("rules.toml"))


def _entries(name: str) -> list[dict[str, Any]]:
    return list(tomllib.loads((HERE / name).read_text(encoding="utf-8"))["wrong"])


def _conversion(entry: dict[str, Any]) -> WrongConversion:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    fails = tuple(_verdict(text) for text in values.pop("fails"))
    processes = tuple(sorted({count for _, count in fails}))
    given = {name: values.pop(name) for name in OF_A_SETTING if name in values}
    return WrongConversion(setting=Setting(processes=processes, **given), fails=fails, **values)


def _verdict(text: str) -> tuple[str, int]:
    code, _, count = text.partition("/")
    return code, int(count)
