"""Checks whose answer is plain, for hooks: files that have nothing to do with training, which most files have not.

Nothing is imported here that takes longer than the answer: no dataclasses, no typer.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from migrate.report.stream import NO_LOOPS, emit
from migrate.source.glance import is_plain

if TYPE_CHECKING:
    from collections.abc import Sequence

CHECK = "--check"
QUIET = frozenset({"--quiet", "-q"})
#: `--force-exclude` may leave files out: of nothing that is found, nothing is left out.
UNDERSTOOD = frozenset({CHECK, "--force-exclude", "--no-cache", *QUIET})
KEPT = "--cache-dir"  # and a folder, of which nothing is wanted


def is_answered(arguments: Sequence[str]) -> bool:
    """Whether all that a command line asks for was to be told that there is nothing, and it was told."""
    paths = [argument for argument in _without_folder(arguments) if argument not in UNDERSTOOD]
    if CHECK not in arguments or not paths or any(path.startswith("-") or not path for path in paths):
        return False
    if not is_plain(paths):
        return False
    if QUIET.isdisjoint(arguments):
        emit(NO_LOOPS, sys.stderr)
    return True


def _without_folder(arguments: Sequence[str]) -> Sequence[str]:
    """The arguments without the folder of results, where one may be given."""
    if "--no-cache" in arguments or KEPT not in arguments[:-1]:
        return arguments
    place = arguments.index(KEPT)
    return arguments if arguments[place + 1].startswith("-") else [*arguments[:place], *arguments[place + 2 :]]
