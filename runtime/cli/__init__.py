"""The command line: `runtime config`, `launch`, `test`, `estimate`, `env`.

Parses, calls, prints; imports no torch to print help.

Only the module of the command that is asked for is imported, and it is run without typer's group, which loads what
checks types: that takes longer than all else that prints help.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import typer

    app: typer.Typer

#: Name → its module here, which has a function `<name>_command`, and what typer is told where that is not usual.
COMMANDS = {"config": "config", "launch": "launch", "test": "selftest", "estimate": "estimate", "env": "env"}
COMPLETION = "_RUNTIME_COMPLETE"  # the variable by which shells ask
PLAIN: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,  # plain help and one-line errors, and no import of rich
    "pretty_exceptions_enable": False,
}
LISTED: dict[str, Any] = {**PLAIN, "add_completion": True}  # of all commands together


@dataclass(frozen=True, slots=True)
class Command:
    """One command."""

    function: Callable[..., None]
    context: dict[str, Any] = field(default_factory=dict)


def command(name: str) -> Command:
    """The command with this name, imported."""
    module = importlib.import_module(f"runtime.cli.{COMMANDS[name]}")
    return Command(getattr(module, f"{name}_command"), getattr(module, "CONTEXT", {}))


def main() -> None:
    """The entry point of the console script."""
    words = sys.argv[1:]
    try:
        if words and words[0] in COMMANDS:
            _alone(words[0])(words[1:], prog_name=f"runtime {words[0]}")
        elif COMPLETION in os.environ:  # a shell asks, and wants to know the options, too
            _everything()(prog_name="runtime")
        else:
            _listing()(prog_name="runtime")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.stderr.write("runtime: no space left on device. Make room, or lead the output elsewhere.\n")
        sys.exit(2)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from runtime.launch.refusals import NO_TORCH

        sys.stderr.write(f"runtime: {NO_TORCH}\n")
        sys.exit(2)


def _alone(name: str) -> typer.Typer:
    import typer  # late, as all that not every use of this package needs

    single = typer.Typer(**PLAIN)
    chosen = command(name)
    single.command(name, context_settings=chosen.context)(chosen.function)
    return single


def _listing() -> typer.Typer:
    from runtime.cli import listing

    return listing.app


def _everything() -> typer.Typer:
    from runtime.cli import group

    return group.app


def __getattr__(name: str) -> Any:
    if name == "app":  # for whoever looks at the commands
        return _everything()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
