"""The command line: parse, call the pipeline, print, exit. No decisions about code are made here.

| file | |
|---|---|
| `command.py` | the command: its options, and which answer is asked for |
| `flags.py` | one option each: its names and its help |
| `examples.py` | for every option a command that uses it |
| `hook.py` | checks whose answer is plain, for hooks |
| `plain.py` | what hooks ask for, read without typer |
| `asked.py` | what a command line asks for, and which of it exclude each other |
| `conversion.py` | files, or standard input, through the pipeline |
| `verification.py` | `--verify` |
| `arguments.py` | what comes after `--` |
| `printing.py` | what is shown where |
| `interactive.py`, `undo.py` | before files are written: what a person accepts, and the way back |
| `narrowing.py` | of findings those that are new: `--since`, `--baseline` |
| `reviewing.py` | `--report` |
| `progress.py` | how far a long run is |
| `catalogue.py` | `--rules` and `--explain` |
| `guard.py` | errors become one line and a status |
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

    app: typer.Typer


def main() -> None:
    """The console script."""
    try:
        from migrate.cli.guard import guarded  # not where the package is imported for something else
        from migrate.source.memory import to_the_end

        _open()
        with to_the_end():
            sys.exit(guarded(lambda: _answer(sys.argv[1:]), shows_traceback="--traceback" in sys.argv))
    except KeyboardInterrupt:  # before any work has begun: modules are imported still
        from migrate.cli.guard import interrupted

        sys.exit(interrupted())


def _open() -> None:
    """Where a shell has closed a standard stream (`>&-`), nothing comes in and nobody reads."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 (until the process ends)


def _answer(arguments: Sequence[str]) -> int:
    """Do what a command line asks for; the exit status."""
    from migrate.cli.hook import is_answered

    if is_answered(arguments):
        return 0
    from migrate.cli.plain import asked

    if (given := asked(arguments)) is None:
        from migrate.cli.command import app

        app(prog_name="migrate")  # exits
        return 0
    from migrate.cli.conversion import convert

    return convert(given)


def __getattr__(name: str) -> object:
    """`app`: hooks do not wait for typer."""
    if name == "app":
        from migrate.cli.command import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["app", "main"]
