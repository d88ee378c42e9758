"""Finding the row of a name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from migrate.analysis.known.table import Calls, Enters

if TYPE_CHECKING:
    from migrate.analysis.known.table import Row
    from migrate.analysis.roles import Role

WILD = re.compile(r"[*\[]")
CAPITAL = "[A-Z]"


class _Layer:
    """The rows of one source: whole names in a dictionary, patterns by their whole modules."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.whole: dict[str, Row] = {}
        self.patterns: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            if WILD.search(row.name):
                self.patterns[_modules(row.name)].append(row)
            else:
                self.whole[row.name] = row

    def row(self, name: str) -> Row | None:
        if name in self.whole:
            return self.whole[name]
        matching = [row for row in self._near(name) if _is_like(name, row.name)]
        return max(matching, key=_weight, default=None)

    def _near(self, name: str) -> Iterable[Row]:
        modules = name
        while modules:
            modules = modules.rpartition(".")[0]
            yield from self.patterns.get(modules, ())


class Tables:
    """The rows of one run: a user's go before ours. Nothing changes them once they are made."""

    def __init__(self, *sources: Iterable[Row]) -> None:
        every = self._rows = [list(rows) for rows in sources]
        self._layers = [_Layer(row for row in rows if not isinstance(row, (Calls, Enters))) for rows in every]
        #: By whole names, beside the rows that say what comes back: the functions that a name calls.
        self.calls: dict[str, tuple[Calls, ...]] = {}
        self.entries: dict[str, Enters] = {}
        for row in (row for rows in every for row in rows):
            if isinstance(row, Calls):
                self.calls[row.name] = (*self.calls.get(row.name, ()), row)
            elif isinstance(row, Enters):
                self.entries[row.name] = row
        self.calling_methods = frozenset(name.rpartition(".")[2] for name in self.calls)
        self._found: dict[str, Row | None] = {}  # what was asked before: every call expression asks

    def beside(self, rows: Iterable[Row]) -> Tables:
        """These tables with further rows behind them."""
        return Tables(*self._rows, rows)

    def row(self, name: str) -> Row | None:
        """What is known of a dotted library name."""
        if name not in self._found:
            rows = (layer.row(name) for layer in self._layers)
            self._found[name] = next((row for row in rows if row is not None), None)
        return self._found[name]

    def role_of_base(self, name: str) -> Role | None:
        """The role of instances of a class that derives from the library class."""
        row = self.row(name)
        return row.base if row is not None else None


def _modules(pattern: str) -> str:
    """The whole modules before the first name with a wildcard."""
    return WILD.split(pattern, maxsplit=1)[0].rpartition(".")[0]


def _weight(row: Row) -> tuple[int, int]:
    """How much a pattern says: what stands before the first wildcard, then all of it."""
    return len(WILD.split(row.name, maxsplit=1)[0]), len(row.name)


def _is_like(name: str, pattern: str) -> bool:
    """Whether a name is one that a pattern stands for. By hand: to compile hundreds of expressions takes longer."""
    whole = _modules(pattern)
    wild = pattern[len(whole) + 1 if whole else 0 :].split(".")
    parts = name[len(whole) + 1 if whole else 0 :].split(".")
    between, last = parts[: -len(wild)], parts[-len(wild) :]
    return (
        len(last) == len(wild)
        and all(part.isidentifier() and part.islower() for part in between)
        and all(_is_part_like(part, piece) for part, piece in zip(last, wild, strict=True))
    )


def _is_part_like(part: str, wild: str) -> bool:
    if wild.startswith(CAPITAL):
        return "A" <= part[:1] <= "Z" and _is_part_like(part[1:], wild[len(CAPITAL) :])
    if "*" not in wild:
        return part == wild
    first, *middle, last = wild.split("*")
    end = len(part) - len(last)
    if not (part.startswith(first) and part.endswith(last) and len(first) <= end):
        return False
    at = len(first)
    for piece in middle:
        at = part.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True
