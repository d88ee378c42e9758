"""Where all processes wait for each other because of files that only the main process writes and removes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.marker import is_barrier
from migrate.programs.output.removals import removals
from migrate.programs.output.rereads import rereads

if TYPE_CHECKING:
    import ast

    from migrate.programs.conversion import Conversion


def waits(conversion: Conversion) -> list[ast.stmt]:
    """The statements above which a wait belongs, but for those where the program has seen to it itself."""
    places = dict.fromkeys([*rereads(conversion), *removals(conversion)])
    return [place for place in places if not _has_waited(conversion, place)]


def _has_waited(conversion: Conversion, place: ast.stmt) -> bool:
    block = conversion.facts.tree(place).block(place)
    above = block[: block.index(place)]
    return bool(above) and is_barrier(above[-1])
