"""Where all processes wait for each other because of files that only the main process writes and removes."""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk
from migrate.programs.marker import is_barrier
from migrate.programs.output.brought import below_what_is_brought
from migrate.programs.output.looked_for import looked_for
from migrate.programs.output.removals import removals
from migrate.programs.output.rereads import rereads

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion


def waits(conversion: Conversion) -> list[ast.stmt]:
    """The statements above which a wait belongs, but for those where the program has seen to it itself."""
    found = (*rereads(conversion), *removals(conversion), *looked_for(conversion), *below_what_is_brought(conversion))
    places = dict.fromkeys(found)
    return [place for place in places if not is_barrier(place) and not _has_waited(conversion, place)]


def _has_waited(conversion: Conversion, place: ast.stmt) -> bool:
    block = conversion.facts.tree(place).block(place)
    above = itertools.dropwhile(_only_names, reversed(block[: block.index(place)]))
    return (nearest := next(above, None)) is not None and is_barrier(nearest)


def _only_names(statement: ast.stmt) -> bool:
    """`map_location = "cpu"`: what gives a name to something, and calls nothing."""
    return isinstance(statement, ast.Assign) and not any(isinstance(node, ast.Call) for node in walk(statement))
