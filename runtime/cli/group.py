"""All commands together: what `runtime --help` lists."""

from __future__ import annotations

import typer

from runtime.cli import COMMANDS, PLAIN, command

app = typer.Typer(name="runtime", no_args_is_help=True, **PLAIN)
for _name in COMMANDS:
    app.command(_name, context_settings=command(_name).context)(command(_name).function)


@app.callback()
def runtime() -> None:
    """Run PyTorch training scripts on any device and any number of processes.

    \b
    Examples:
      runtime launch train.py --epochs 3         one process per GPU, or one on the CPU
      runtime launch --cpu -n 2 train.py         two processes on the CPU
      runtime launch --explain                   every setting, and where it came from
      runtime config                             write the settings into a file
      runtime test                               check that this setup computes what it should
      runtime estimate train:make_model          how much memory a model takes while it is trained
      runtime env                                what a bug report needs
    """
