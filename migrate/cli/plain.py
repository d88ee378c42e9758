"""Command lines of hooks and scripts, read without typer: it and what it brings cost more than a small file.

Only switches, the folder of results and paths are understood here; everything else, and every mistake, is typer's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from migrate.cli.asked import Asked

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The field of `Asked` that each sets.
SWITCHES = {
    "--check": "check",
    "--write": "write",
    "-w": "write",
    "--diff": "only_diff",
    "--force-exclude": "force_exclude",
    "--no-cache": "no_cache",
    "--quiet": "quiet",
    "-q": "quiet",
}
CACHE_DIR = "--cache-dir"


def asked(arguments: Sequence[str]) -> Asked | None:
    """What a command line asks for; None where it holds more than is understood here, or no path."""
    given: dict[str, Any] = {}
    paths: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == CACHE_DIR:
            given["cache_dir"] = folder = next(waiting, "")
            if not folder or folder.startswith("-"):
                return None
        elif argument in SWITCHES:
            given[SWITCHES[argument]] = True
        elif argument.startswith("-") and argument != "-":
            return None
        else:
            paths.append(argument)
    return Asked(paths=paths, **given) if paths and all(paths) else None
