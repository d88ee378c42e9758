"""What the user asked `runtime launch` for."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path


class LaunchError(Exception):
    """Asked for something that cannot be started; the message is one line and names the way out."""


class MixedPrecision(str, Enum):
    NO = "no"
    FP16 = "fp16"
    BF16 = "bf16"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """One launch. `None` means that the user left the choice to us."""

    target: str
    """Path of a script, or with `as_module` the dotted name of a module."""
    arguments: tuple[str, ...] = ()
    as_module: bool = False
    num_processes: int | None = None
    """Total over all machines."""
    num_machines: int = 1
    machine_rank: int = 0
    main_process_ip: str | None = None
    main_process_port: int | None = None
    cpu: bool = False
    mixed_precision: MixedPrecision | None = None
    gpu_ids: tuple[str, ...] | None = None
    """Devices to use, as CUDA_VISIBLE_DEVICES takes them: indices or UUIDs."""
    threads_per_process: int | None = None
    max_restarts: int = 0
    debug: bool = False


def check(spec: LaunchSpec) -> None:
    """Refuse what cannot be started whatever the machine has.

    Raises:
        LaunchError: the first thing that is wrong with `spec`.
    """
    for is_wrong, message in _REFUSALS:
        if is_wrong(spec):
            raise LaunchError(message(spec))


def parse_gpu_ids(text: str | None) -> tuple[str, ...] | None:
    """The devices named by `0,2`; None for `all` and for nothing.

    Raises:
        LaunchError: an empty item.
    """
    if text is None or text.strip() == "all":
        return None
    ids = tuple(item.strip() for item in text.split(","))
    if not all(ids) or len(set(ids)) != len(ids):
        raise LaunchError(
            f"--gpu_ids {text!r} is not a list of different GPUs; write it as --gpu_ids 0,1 or --gpu_ids all"
        )
    return ids


def _similar(path: Path) -> str:
    """A hint at the file that was probably meant, or nothing."""
    folder = path.parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"did you mean {folder / close[0]}?" if close else "the script comes after the options of the launcher"


def _is_missing(spec: LaunchSpec) -> bool:
    return not spec.as_module and not Path(spec.target).exists()


def _is_directory(spec: LaunchSpec) -> bool:
    return not spec.as_module and Path(spec.target).is_dir()


def _port_is_invalid(spec: LaunchSpec) -> bool:
    return spec.main_process_port is not None and not 0 <= spec.main_process_port <= 65535


def _lacks_port(spec: LaunchSpec) -> bool:
    return spec.num_machines > 1 and spec.main_process_port == 0


def _is_uneven(spec: LaunchSpec) -> bool:
    return spec.num_processes is not None and spec.num_processes % spec.num_machines != 0


_REFUSALS: tuple[tuple[Callable[[LaunchSpec], bool], Callable[[LaunchSpec], str]], ...] = (
    (_is_missing, lambda s: f"no such file: {s.target}; {_similar(Path(s.target))}"),
    (
        _is_directory,
        lambda s: f"{s.target} is a directory; name the script in it, or run a package with -m and its dotted name",
    ),
    (
        lambda s: s.num_processes is not None and s.num_processes < 1,
        lambda s: f"--num_processes {s.num_processes}: at least 1 is needed; leave it out for one process per GPU",
    ),
    (
        lambda s: s.num_machines < 1,
        lambda s: f"--num_machines {s.num_machines}: at least 1 is needed; leave it out for this machine alone",
    ),
    (
        lambda s: not 0 <= s.machine_rank < s.num_machines,
        lambda s: (
            f"--machine_rank {s.machine_rank} with --num_machines {s.num_machines}: ranks are 0 to {s.num_machines - 1}"
        ),
    ),
    (
        lambda s: s.num_machines > 1 and not s.main_process_ip,
        lambda _: "several machines need --main_process_ip, the address of the machine with --machine_rank 0",
    ),
    (
        _port_is_invalid,
        lambda s: f"--main_process_port {s.main_process_port}: ports are 1 to 65535; 0 picks a free one on one machine",
    ),
    (
        _lacks_port,
        lambda _: "--main_process_port 0 cannot work on several machines: all of them have to name the same port",
    ),
    (
        _is_uneven,
        lambda s: (
            f"--num_processes {s.num_processes} is the total and cannot be shared by {s.num_machines} machines; "
            f"use a multiple of {s.num_machines}"
        ),
    ),
    (
        lambda s: s.cpu and s.mixed_precision is MixedPrecision.FP16,
        lambda _: "--mixed_precision fp16 needs a GPU; with --cpu use --mixed_precision bf16",
    ),
    (
        lambda s: s.cpu and s.gpu_ids is not None,
        lambda _: "--cpu and --gpu_ids exclude each other; leave one of them out",
    ),
    (
        lambda s: s.threads_per_process is not None and s.threads_per_process < 1,
        lambda s: f"--num_cpu_threads_per_process {s.threads_per_process}: at least 1 is needed",
    ),
    (
        lambda s: s.max_restarts < 0,
        lambda s: f"--max_restarts {s.max_restarts}: 0 or more is needed",
    ),
    (
        # Elastic's static meeting does not tell the other machines to start again: they would wait for a dead one.
        lambda s: s.max_restarts > 0 and s.num_machines > 1,
        lambda _: (
            "--max_restarts works on one machine only; on several leave it out, and start all of them again from the "
            "last checkpoint"
        ),
    ),
)
