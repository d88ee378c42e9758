"""What `runtime --help` shows: the commands by name, without their modules and options, which take as long as typer."""

from __future__ import annotations

import typer

from runtime.cli import LISTED

#: The first line of each command's help.
SUMMARIES = {
    "config": "Write the settings of runtime launch into a file.",
    "launch": "Run a script on one or several processes.",
    "test": (
        "Check this setup: collectives, a training on all processes as on one, evaluation, checkpoints, precisions."
    ),
    "estimate": "Show how much memory a model takes while it is trained, without making it.",
    "env": "Show versions, devices, backends, the file of settings and the variables of a launch, for a bug report.",
}

app = typer.Typer(name="runtime", no_args_is_help=True, **LISTED)


def _listed() -> None:
    """Never called: a command that is asked for is run by itself (`runtime.cli.main`)."""


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


for _name, _summary in SUMMARIES.items():
    app.command(_name, help=_summary)(_listed)
