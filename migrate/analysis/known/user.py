"""A user's own rows: `[tool.migrate.known]` in pyproject.toml, checked and turned into rows that go before ours.

[tool.migrate.known.makes]
"mylib.models.build_*" = "model"
"mylib.data.fast_loader" = { role = "dataloader", over = 0 }
"mylib.setup" = ["model", "optimizer"]

[tool.migrate.known.passes]
"mylib.wrap" = 0
"mylib.prepare" = [0, 1]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from migrate.analysis.known import ROWS
from migrate.analysis.known.lookup import Tables
from migrate.analysis.known.table import NOWHERE, Argument, Gives, Makes, Other, Passes, Row
from migrate.analysis.roles import Role
from migrate.errors import UsageError

#: What a call can be said to make. UNKNOWN: nothing that a rule asks for, where a row of ours says more than is true.
ROLES = {
    role.value: role
    for role in (
        Role.MODEL,
        Role.CRITERION,
        Role.OPTIMIZER,
        Role.SCHEDULER,
        Role.LOADER,
        Role.FEED,
        Role.DATASET,
        Role.SAMPLER,
        Role.TENSOR,
        Role.DEVICE,
        Role.AVAILABLE,
        Role.CHECKPOINT,
        Role.WRITER,
        Role.METRIC,
        Role.SCALER,
        Role.AUTOCAST,
        Role.ACCELERATOR,
        Role.AVERAGE,
        Role.RANK,
        Role.LOCAL_RANK,
        Role.WORLD_SIZE,
        Role.NUMBER,
        Role.UNKNOWN,
    )
}
KEYS = ("role", "over")
_NAME = re.compile(r"[A-Za-z_]\w*(\.[\w*]+)+")
_ARGUMENT = "the position of an argument, counted from 0, or its keyword"


def tables(settings: Mapping[str, Any], path: str) -> Tables:
    """The tables of a run whose pyproject.toml (`path`) has these settings under `[tool.migrate]`.

    Raises:
        UsageError: a name, a role or a key means nothing.
    """
    return Tables(tuple(_rows(settings.get("known", {}), path)), ROWS)


def _rows(known: object, path: str) -> Iterator[Row]:
    for shape, rows in _entries(known, "tool.migrate.known", path):
        if shape not in _SHAPES:
            raise UsageError(f"[tool.migrate.known] holds {shape!r}", f"Allowed: {_listed(_SHAPES)}.", path=path)
        for name, value in _entries(rows, f"tool.migrate.known.{shape}", path):
            said = _Said(path, f'[tool.migrate.known.{shape}] "{name}" = {value!r}')
            if not _NAME.fullmatch(name):
                raise said.wrong(f"{name!r} is no name", 'a dotted name that begins with its package: "mylib.build_*"')
            yield _SHAPES[shape](name, value, said)


def _entries(table: object, name: str, path: str) -> Iterator[tuple[str, object]]:
    if not isinstance(table, dict):
        raise UsageError(f"{name} is {table!r}, no table", f"Write [{name}] and its rows below.", path=path)
    yield from table.items()


class _Said:
    """Where a row stands and what it says, for messages."""

    def __init__(self, path: str, row: str) -> None:
        self._path = path
        self._row = row

    def wrong(self, what: str, allowed: str) -> UsageError:
        """The error about a part of the row."""
        return UsageError(f"{self._row}: {what}", f"Allowed: {allowed}.", path=self._path)


def _makes(name: str, value: object, said: _Said) -> Row:
    if isinstance(value, list):
        return Gives(name, tuple(_role(part, said) for part in value))
    if not isinstance(value, dict):
        role, over = _role(value, said), None
    else:
        for key in value:
            if key not in KEYS:
                raise said.wrong(f"{key!r} is not a key", _listed(KEYS))
        if "role" not in value:
            raise said.wrong("it has no role", _listed(ROLES))
        role = _role(value["role"], said)
        over = _argument(value["over"], said) if "over" in value else None
    return Other(name) if role is Role.UNKNOWN else Makes(name, role, over)


def _passes(name: str, value: object, said: _Said) -> Row:
    if isinstance(value, list):
        return Gives(name, tuple(_argument(part, said) for part in value))
    return Passes(name, _argument(value, said))


def _role(value: object, said: _Said) -> Role:
    if not isinstance(value, str) or value not in ROLES:
        raise said.wrong(f"{value!r} is not a role", _listed(ROLES))
    return ROLES[value]


def _argument(value: object, said: _Said) -> Argument:
    """`0`, `"model"`, or `{ position = 0, keyword = "model" }` where it is passed both ways."""
    if isinstance(value, dict) and value and value.keys() <= {"position", "keyword"}:
        position, keyword = value.get("position", NOWHERE), value.get("keyword", "")
    else:
        position, keyword = (NOWHERE, value) if isinstance(value, str) else (value, "")
    if not isinstance(position, int) or isinstance(position, bool) or position < 0 or not isinstance(keyword, str):
        raise said.wrong(f"{value!r} is not an argument", f'{_ARGUMENT}, or {{ position = 0, keyword = "model" }}')
    return position, keyword


def _listed(words: object) -> str:
    return ", ".join(str(word) for word in words)  # type: ignore[attr-defined]


_SHAPES = {"makes": _makes, "passes": _passes}
