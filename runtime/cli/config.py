"""`runtime config`: asks, and writes the file that `runtime launch` reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from runtime.cli.refusal import refuse
from runtime.launch.spec import LaunchError

CONTEXT: dict[str, Any] = {"token_normalize_func": lambda name: name.replace("-", "_")}

ConfigPath = Annotated[
    Optional[str],  # noqa: UP045 - typer reads this at run time, on Python 3.10 too
    typer.Option("--config_file", metavar="FILE", help="File to write.  [default: the user's]", show_default=False),
]
Project = Annotated[bool, typer.Option("--project", help="Write runtime.yaml in this folder.")]
Default = Annotated[bool, typer.Option("--default", help="Ask nothing: write what was found on this machine.")]
Update = Annotated[
    bool, typer.Option("--update", help="Ask nothing: write a file that is there anew, with what it says.")
]


def config_command(
    config_file: ConfigPath = None, project: Project = False, default: Default = False, update: Update = False
) -> None:
    """Write the settings of runtime launch into a file.

    Asks what matters on this machine, with what was found as the default, and writes YAML with a comment on every key.
    A file of this folder or of the folders above it in the project (runtime.yaml) goes before that of the user, and
    that before Accelerate's default_config.yaml, whose keys are the same.

    \b
    Examples:
      runtime config                               asks, and writes the user's file
      runtime config --project --default           runtime.yaml with what was found
      runtime config --update                      the file in use, in the form of this version
      runtime config --update --config_file ~/.cache/huggingface/accelerate/default_config.yaml
    """
    from runtime.launch import configwrite  # late: not to print help

    try:
        path = configwrite.target(config_file, os.environ, Path.cwd(), project=project, update=update)
        if update:
            configwrite.update(path)
        elif default:
            configwrite.write_found(path)
        else:
            configwrite.write_answers(path, _prompt, _complain)
    except LaunchError as error:
        refuse("config", error)
    typer.echo(f"{path} is written; runtime launch --explain shows what it makes of it")


def _prompt(text: str, default: str | None) -> str:
    said: str = typer.prompt(text, default=default)
    return said


def _complain(text: str) -> None:
    typer.echo(f"  {text}", err=True)
