"""The command line: `runtime launch`, `runtime env`. Parses, calls, prints; imports no torch to print help."""

from __future__ import annotations

import sys

import typer

from runtime.cli.env import env_command
from runtime.cli.launch import LAUNCH_CONTEXT, launch_command

app = typer.Typer(
    name="runtime",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help and one-line errors, and no import of rich
    pretty_exceptions_enable=False,
)
app.command("launch", context_settings=LAUNCH_CONTEXT)(launch_command)
app.command("env")(env_command)


@app.callback()
def runtime() -> None:
    """Run PyTorch training scripts on any device and any number of processes.

    \b
    Examples:
      runtime launch train.py --epochs 3         one process per GPU, or one on the CPU
      runtime launch --cpu -n 2 train.py         two processes on the CPU
      runtime env                                what a bug report needs
    """


def main() -> None:
    """The entry point of the console script."""
    try:
        app(prog_name="runtime")
    except KeyboardInterrupt:
        sys.exit(130)
