"""What library calls make, take and give: tables, one file a subject. A new library is a new row, not new code."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from migrate.analysis.known import data, output, tensors, training

if TYPE_CHECKING:
    from migrate.analysis.known.table import Makes, Passes
    from migrate.analysis.roles import Role

_ROWS: tuple[Makes, ...] = (*training.MAKES, *data.MAKES, *tensors.MAKES, *output.MAKES)
_EXACT = {row.name: row for row in _ROWS if not row.name.endswith("*")}
_PREFIXES = sorted((row for row in _ROWS if row.name.endswith("*")), key=lambda row: -len(row.name))


@lru_cache(maxsize=4096)
def made_by(name: str) -> Makes | None:
    """What calling the library name makes; the longest matching row wins."""
    if name in _EXACT:
        return _EXACT[name]
    return next((row for row in _PREFIXES if name.startswith(row.name[:-1])), None)


@lru_cache(maxsize=4096)
def role_of_base(name: str) -> Role | None:
    """The role of instances of a class that derives from the library class."""
    row = made_by(name)
    return row.role if row is not None else None


def passes(name: str) -> Passes | None:
    """Library functions that hand one of their arguments on: DataParallel(model), Variable(x), tqdm(loader)."""
    return _PASSES.get(name)


_PASSES = {row.name: row for row in (*training.PASSES, *data.PASSES, *tensors.PASSES)}
