"""`runtime launch`."""

from __future__ import annotations

from typing import Annotated, Any, Optional

import typer

from runtime.launch.spec import (
    LaunchError,
    LaunchSpec,
    Machines,
    Meeting,
    MixedPrecision,
    parse_gpu_ids,
    parse_rdzv_conf,
)
from runtime.launch.start import launch


def _underscores(name: str) -> str:
    return name.replace("-", "_")


LAUNCH_CONTEXT: dict[str, Any] = {
    "allow_interspersed_args": False,  # the first word that is no option is the script; all after it is the script's
    "token_normalize_func": _underscores,  # --num-processes and --num_processes are one option
    "max_content_width": 110,
}


def launch_command(
    script: Annotated[
        str, typer.Argument(metavar="SCRIPT", help="Script to run, or with -m the module.", show_default=False)
    ],
    arguments: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer reads this at run time, on Python 3.10 too
        typer.Argument(metavar="ARGUMENTS", help="Go to the script untouched, options included.", show_default=False),
    ] = None,
    num_processes: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--num_processes",
            "-n",
            help="Processes over all machines.  [default: one per GPU, else 1]",
            show_default=False,
        ),
    ] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="Run on the CPU, also where there are GPUs.")] = False,
    mixed_precision: Annotated[
        Optional[MixedPrecision],  # noqa: UP045
        typer.Option(
            "--mixed_precision",
            help="Precision of the forward pass; the script's own choice goes first.",
            show_default=False,
        ),
    ] = None,
    gpu_ids: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--gpu_ids", metavar="IDS", help="GPUs to use, such as 0,2.  [default: all]", show_default=False),
    ] = None,
    as_module: Annotated[
        bool, typer.Option("-m", "--module", help="SCRIPT is a module: runtime launch -m package.train")
    ] = False,
    num_cpu_threads_per_process: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--num_cpu_threads_per_process",
            metavar="N",
            help="OMP_NUM_THREADS of each process.  [default: cores / processes]",
            show_default=False,
        ),
    ] = None,
    max_restarts: Annotated[
        int, typer.Option("--max_restarts", help="Start all processes again after a failure, so often.")
    ] = 0,
    processes_per_machine: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--processes_per_machine",
            metavar="N",
            help="Processes on each machine, in the place of --num_processes.",
            show_default=False,
        ),
    ] = None,
    num_machines: Annotated[
        str,
        typer.Option(
            "--num_machines", metavar="N|MIN:MAX", help="Machines that take part; MIN:MAX: they may come and go."
        ),
    ] = "1",
    machine_rank: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option("--machine_rank", help="Which of them this is, from 0.  [default: 0]", show_default=False),
    ] = None,
    rdzv_backend: Annotated[
        Optional[Meeting],  # noqa: UP045
        typer.Option(
            "--rdzv_backend",
            help="How machines meet: static (numbered by --machine_rank) or c10d (may start again, come and go).  "
            "[default: c10d with --max_restarts or MIN:MAX, else static]",
            show_default=False,
        ),
    ] = None,
    rdzv_conf: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--rdzv_conf",
            metavar="NAME=VALUE,...",
            help="Further settings of the meeting, in seconds: join_timeout, last_call_timeout, timeout.",
            show_default=False,
        ),
    ] = None,
    main_process_ip: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--main_process_ip", metavar="ADDRESS", help="Address of machine 0.", show_default=False),
    ] = None,
    main_process_port: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--main_process_port",
            metavar="PORT",
            help="Where the processes meet.  [default: a free port; 29500 on several machines]",
            show_default=False,
        ),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show torch elastic's log, and set ACCELERATE_DEBUG_MODE for the script.")
    ] = False,
) -> None:
    """Run a script on one or several processes.

    \b
    Examples:
      runtime launch train.py --epochs 3           one process per GPU, or one on the CPU
      runtime launch --cpu -n 2 train.py           two processes on the CPU
      runtime launch -n 4 --mixed_precision bf16 train.py
      runtime launch --gpu_ids 0,2 train.py        two processes, on GPU 0 and 2
      runtime launch -m package.train --epochs 3   a module

    \b
    Two machines with 8 GPUs each; on the second one --machine_rank 1:
      runtime launch --num_machines 2 --machine_rank 0 --main_process_ip 10.0.0.1 -n 16 train.py

    Options of the launcher come before the script, options of the script after it. Every option can be written with
    dashes or with underscores. The exit status is that of the script; of several processes, that of the one that failed
    first. 2 means that nothing was started.
    """
    try:
        spec = LaunchSpec(
            target=script,
            arguments=tuple(arguments or ()),
            as_module=as_module,
            num_processes=num_processes,
            processes_per_machine=processes_per_machine,
            machines=Machines.parse(num_machines),
            machine_rank=machine_rank,
            rdzv_backend=rdzv_backend,
            rdzv_conf=parse_rdzv_conf(rdzv_conf),
            main_process_ip=main_process_ip,
            main_process_port=main_process_port,
            cpu=cpu,
            mixed_precision=mixed_precision,
            gpu_ids=parse_gpu_ids(gpu_ids),
            threads_per_process=num_cpu_threads_per_process,
            max_restarts=max_restarts,
            debug=debug,
        )
        status = launch(spec)
    except LaunchError as error:
        typer.echo(f"runtime launch: {error}", err=True)
        raise typer.Exit(2) from None
    raise typer.Exit(status)
