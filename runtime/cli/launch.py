"""`runtime launch`: its options are those of the table in `runtime/launch/options.py`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, Optional

import typer

from runtime.cli.refusal import refuse
from runtime.launch.option import Option, Topic
from runtime.launch.options import OPTIONS
from runtime.launch.spec import LaunchError

if TYPE_CHECKING:
    from runtime.launch.request import Request


def _underscores(name: str) -> str:
    return name.replace("-", "_")


CONTEXT: dict[str, Any] = {
    "allow_interspersed_args": False,  # the first word that is no option is the script; all after it is the script's
    "token_normalize_func": _underscores,  # --num-processes and --num_processes are one option
    "max_content_width": 110,
}
_NO_SCRIPT = "SCRIPT is missing: runtime launch [options] train.py [its arguments]"

Script = Annotated[
    Optional[str],  # noqa: UP045 - typer reads this at run time, on Python 3.10 too
    typer.Argument(metavar="SCRIPT", help="Script to run, or with -m the module.", show_default=False),
]
Words = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Argument(metavar="ARGUMENTS", help="Go to the script untouched, options included.", show_default=False),
]
ConfigPath = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--config_file", metavar="FILE", help="Settings to use; none: no file.  [default: the one that is found]"
    ),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show every setting and where it came from, and start nothing.")
]
DryRun = Annotated[
    bool, typer.Option("--dry_run", help="Show torchrun's command and the variables, and start nothing.")
]


def launch_command(
    script: Script = None,
    arguments: Words = None,
    config_file: ConfigPath = None,
    explain_only: Explain = False,
    dry_run_only: DryRun = False,
    **given: Any,
) -> None:
    """Run a script on one or several processes.

    \b
    Examples:
      runtime launch train.py --epochs 3           one process per GPU, or one on the CPU
      runtime launch --cpu -n 2 train.py           two processes on the CPU
      runtime launch -n 4 --mixed_precision bf16 train.py
      runtime launch --gpu_ids 0,2 train.py        two processes, on GPU 0 and 2
      runtime launch -m package.train --epochs 3   a module
      runtime launch --explain                     every setting, and where it came from

    \b
    Two machines with 8 GPUs each; on the second one --machine_rank 1:
      runtime launch --num_machines 2 --machine_rank 0 --main_process_ip 10.0.0.1 -n 16 train.py
    Under SLURM, on all machines of the job, without options:
      srun --ntasks-per-node=1 runtime launch train.py

    Options of the launcher come before the script, options of the script after it. Every option can be written with
    dashes or with underscores. What is not given comes from the environment, then from a file (runtime config). The
    exit status is that of the script; of several processes, that of the one that failed first. 2 means that nothing was
    started.
    """
    from runtime.launch.request import request  # late: not to print help

    def run(asked: Request) -> int:
        return _explain(asked) if explain_only else _run(asked, script, dry_run_only=dry_run_only)

    carry_out("launch", lambda: request(script or "", arguments or (), given, os.environ, config_file=config_file), run)


def carry_out(command: str, ask: Callable[[], Request], run: Callable[[Request], int]) -> NoReturn:
    """Do what is asked for, and end with its exit status; what cannot be done is told in one line."""
    from runtime.launch.request import blamed

    try:
        asked = ask()
    except LaunchError as error:
        refuse(command, error)
    try:
        status = run(asked)
    except LaunchError as error:
        refuse(command, blamed(str(error), asked.settings))
    raise typer.Exit(status)


def _explain(asked: Request) -> int:
    from runtime.launch import explain, share

    found = share.divide(asked.spec, os.environ)
    typer.echo(explain.explain(asked, found, os.environ, Path.cwd()), nl=False)
    return 0


def _run(asked: Request, script: str | None, *, dry_run_only: bool) -> int:
    from runtime.launch import explain, share, start
    from runtime.launch.refusals import check

    if script is None:
        raise LaunchError(_NO_SCRIPT)
    if asked.around.notice:
        typer.echo(f"runtime launch: {asked.around.notice}", err=True)
    if not dry_run_only:
        return start.launch(asked.spec)
    check(asked.spec)
    typer.echo(explain.dry_run(asked.spec, share.divide(asked.spec, os.environ), os.environ), nl=False)
    return 0


def _parameter(option: Option) -> inspect.Parameter:
    """The option as typer wants it. Values are words, which the readers of the table read: there is one way to read."""
    otherwise = f"  [default: {option.otherwise or option.default}]" if option.otherwise or _has_default(option) else ""
    flags = list(option.flags)
    if option.is_switch and option.topic is not Topic.SCRIPT:
        flags[0] = f"{flags[0]}/--no_{flags[0].removeprefix('--')}"
    text = f"{option.help}{otherwise}"
    info = typer.Option(*flags, metavar=option.metavar, help=text, show_default=False, hidden=not option.is_shown)
    kind = Optional[bool] if option.is_switch else Optional[str]  # noqa: UP045
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, info]
    )


def _has_default(option: Option) -> bool:
    return option.default is not None and not option.is_switch


def _parameters(function: Callable[..., None]) -> Iterator[inspect.Parameter]:
    """Those of the function, with one for each option in the place of its keyword arguments."""
    own = [item for item in inspect.signature(function, eval_str=True).parameters.values() if item.name != "given"]
    yield from (item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in own[:2])
    about_models = (Topic.SHARDS, Topic.COMPILING)
    yield from (_parameter(option) for option in OPTIONS if option.topic not in about_models)
    yield from (item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in own[2:])
    yield from (_parameter(option) for option in OPTIONS if option.topic in about_models)


launch_command.__signature__ = inspect.Signature(list(_parameters(launch_command)))  # type: ignore[attr-defined]
