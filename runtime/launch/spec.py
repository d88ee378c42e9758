"""What the user asked `runtime launch` for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from runtime.config import MixedPrecision
from runtime.launch.surroundings import Place

NO_TORCH = "torch is not installed in this Python; run pip install 'torch-migrate[runtime]'"


class LaunchError(Exception):
    """Asked for something that cannot be started; the message is one line and names the way out."""


class Meeting(str, Enum):
    """How machines find each other: `--rdzv_backend`."""

    STATIC = "static"  # numbered by --machine_rank; a fixed number of machines, one start
    C10D = "c10d"  # numbered as they come; machines may join, leave and start again


@dataclass(frozen=True, slots=True)
class Machines:
    """How many machines take part: at least, and at most."""

    least: int = 1
    most: int = 1

    @classmethod
    def parse(cls, text: str) -> Machines:
        """`4`, or `2:4`.

        Raises:
            LaunchError: it is neither.
        """
        least, colon, most = text.strip().partition(":")
        if not least.isdecimal() or (colon and not most.isdecimal()):
            raise LaunchError("write a number, such as 2, or MIN:MAX, such as 2:4")
        return cls(int(least), int(most or least))

    @property
    def are_several(self) -> bool:
        """Whether there can be more than one."""
        return self.most > 1

    @property
    def is_elastic(self) -> bool:
        """Whether they may come and go."""
        return self.most != self.least

    def __str__(self) -> str:
        return f"{self.least}:{self.most}" if self.is_elastic else str(self.least)


class Console(str, Enum):
    """Which lines of the processes are shown."""

    ALL = "all"
    PREFIX = "prefix"  # all, with the rank in front
    MAIN = "main"  # those of rank 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """One launch. `None` means that the user left the choice to us."""

    target: str
    """Path of a script; with `as_module` the dotted name of a module, with `no_python` a program."""
    arguments: tuple[str, ...] = ()
    as_module: bool = False
    no_python: bool = False
    num_processes: int | None = None
    """Total over all machines."""
    processes_per_machine: int | None = None
    machines: Machines = Machines()
    machine_rank: int | None = None
    rdzv_backend: Meeting | None = None
    rdzv_conf: Mapping[str, str] = field(default_factory=dict)
    """Further settings of the meeting, such as `join_timeout`, in seconds."""
    main_process_ip: str | None = None
    main_process_port: int | None = None
    cpu: bool = False
    mixed_precision: MixedPrecision | None = None
    gpu_ids: tuple[str, ...] | None = None
    """Devices to use, as CUDA_VISIBLE_DEVICES takes them: indices or UUIDs."""
    threads_per_process: int | None = None
    affinity: bool = False
    """Bind each process to cores of its own."""
    max_restarts: int = 0
    monitor_interval: float = 0.1  # s, torchrun's
    log_dir: str | None = None
    console: Console = Console.ALL
    debug: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    """Further settings that the processes get as variables, such as those of FSDP."""
    place: Place | None = None
    """Which process this is, where `srun` or `mpirun` has started all of them."""

    @property
    def meeting(self) -> Meeting:
        """How the machines find each other: so that ranks are as asked for, unless machines come and go."""
        if self.rdzv_backend is not None:
            return self.rdzv_backend
        return Meeting.C10D if self.machines.is_elastic or self.max_restarts else Meeting.STATIC

    @property
    def needs_watching(self) -> bool:
        """Whether even a single process here is not simply the script."""
        keeps_lines = self.log_dir is not None or self.console is Console.PREFIX
        return self.machines.are_several or self.max_restarts > 0 or keeps_lines

    @property
    def may_start_again(self) -> bool:
        """Whether workers can be started more than once: after a failure, or because machines come and go."""
        return self.max_restarts > 0 or self.machines.is_elastic


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
        raise LaunchError("that is not a list of different GPUs; write it as --gpu_ids 0,1 or --gpu_ids all")
    return ids


def parse_rdzv_conf(text: str | None) -> dict[str, str]:
    """The settings in `join_timeout=300,last_call_timeout=10`.

    Raises:
        LaunchError: an item without a name or a value.
    """
    items = [item.partition("=") for item in (text or "").split(",") if item.strip()]
    if not all(name.strip() and value.strip() for name, _, value in items):
        raise LaunchError("write it as --rdzv_conf join_timeout=300,last_call_timeout=10")
    return {name.strip(): value.strip() for name, _, value in items}


def _has_no_torch(_: LaunchSpec) -> bool:
    import importlib.util  # late: only for a start

    return importlib.util.find_spec("torch") is None


def _similar(path: Path) -> str:
    """A hint at the file that was probably meant, or nothing."""
    import difflib  # late: only for a message

    folder = path.parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"did you mean {folder / close[0]}?" if close else "the script comes after the options of the launcher"


def _is_missing(spec: LaunchSpec) -> bool:
    return not spec.as_module and not spec.no_python and not Path(spec.target).exists()


def _is_no_program(spec: LaunchSpec) -> bool:
    import shutil  # late: only for programs

    return spec.no_python and shutil.which(spec.target) is None


def _is_directory(spec: LaunchSpec) -> bool:
    return not spec.as_module and not spec.no_python and Path(spec.target).is_dir()


def _is_notebook(spec: LaunchSpec) -> bool:
    return not spec.as_module and not spec.no_python and spec.target.endswith(".ipynb")


def _hiding(spec: LaunchSpec) -> Path | None:
    """The module beside a converted script that it would import in the place of this package."""
    import re  # late: only for a start

    script = Path(spec.target)
    places = (script.parent / "runtime" / "__init__.py", script.parent / "runtime.py")
    own = next((path for path in places if path.is_file()), None)
    if spec.as_module or spec.no_python or own is None or b"Accelerator" in own.read_bytes():
        return None  # nothing is there, or a copy of this package
    wanted = rb"^\s*from\s+runtime\s+import\s[^\n]*\bAccelerator\b"
    return own if re.search(wanted, script.read_bytes(), re.MULTILINE) else None


def _is_a_file(spec: LaunchSpec) -> bool:
    return spec.log_dir is not None and Path(spec.log_dir).exists() and not Path(spec.log_dir).is_dir()


def _is_forbidden(spec: LaunchSpec) -> bool:
    if spec.log_dir is None:
        return False
    folder = Path(spec.log_dir).absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return not os.access(there, os.W_OK | os.X_OK)


def _place_differs(spec: LaunchSpec) -> bool:
    return spec.place is not None and spec.num_processes not in (None, spec.place.size)


def _port_is_invalid(spec: LaunchSpec) -> bool:
    return spec.main_process_port is not None and not 0 <= spec.main_process_port <= 65535


def _lacks_port(spec: LaunchSpec) -> bool:
    return spec.machines.are_several and spec.main_process_port == 0


def _is_uneven(spec: LaunchSpec) -> bool:
    number = spec.machines.least
    return spec.num_processes is not None and not spec.machines.is_elastic and spec.num_processes % number != 0


def _contradicts(spec: LaunchSpec) -> bool:
    each, all_of_them = spec.processes_per_machine, spec.num_processes
    return each is not None and all_of_them is not None and each * spec.machines.least != all_of_them


def _has_no_rank(spec: LaunchSpec) -> bool:
    return spec.machine_rank is not None and not 0 <= spec.machine_rank < spec.machines.most


def _needs_c10d(spec: LaunchSpec) -> bool:
    # Elastic's static meeting does not tell the other machines to start again: they would wait for a dead one.
    return spec.machines.are_several and spec.may_start_again and spec.meeting is Meeting.STATIC


_REFUSALS: tuple[tuple[Callable[[LaunchSpec], bool], Callable[[LaunchSpec], str]], ...] = (
    (_is_missing, lambda s: f"no such file: {s.target}; {_similar(Path(s.target))}"),
    (
        _is_directory,
        lambda s: f"{s.target} is a directory; name the script in it, or run a package with -m and its dotted name",
    ),
    (
        _is_notebook,
        lambda s: f"{s.target} is a notebook, which Python does not run; `jupyter execute {s.target}` does",
    ),
    (
        lambda s: _hiding(s) is not None,
        lambda s: f"{s.target} imports Accelerator from runtime, and would find {_hiding(s)}; give that another name",
    ),
    (
        lambda s: s.num_processes is not None and s.num_processes < 1,
        lambda s: f"--num_processes {s.num_processes}: at least 1 is needed; leave it out for one process per GPU",
    ),
    (
        lambda s: s.processes_per_machine is not None and s.processes_per_machine < 1,
        lambda s: f"--processes_per_machine {s.processes_per_machine}: at least 1 is needed",
    ),
    (
        lambda s: s.machines.least < 1,
        lambda s: f"--num_machines {s.machines}: at least 1 is needed; leave it out for this machine alone",
    ),
    (
        lambda s: s.machines.most < s.machines.least,
        lambda s: f"--num_machines {s.machines}: MIN:MAX needs the smaller number first",
    ),
    (
        _has_no_rank,
        lambda s: (
            f"--machine_rank {s.machine_rank} with --num_machines {s.machines}: ranks are 0 to {s.machines.most - 1}"
        ),
    ),
    (
        lambda s: s.machines.are_several and not s.main_process_ip,
        lambda _: "several machines need --main_process_ip, the address of the machine with --machine_rank 0",
    ),
    (
        lambda s: s.machines.is_elastic and s.num_processes is not None,
        lambda s: (
            f"--num_processes {s.num_processes} is the total, which changes with --num_machines {s.machines}; "
            "use --processes_per_machine"
        ),
    ),
    (
        _contradicts,
        lambda s: (
            f"--processes_per_machine {s.processes_per_machine} on {s.machines} machines is not --num_processes "
            f"{s.num_processes}; leave one of them out"
        ),
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
            f"--num_processes {s.num_processes} is the total and cannot be shared by {s.machines} machines; "
            f"use a multiple of {s.machines}"
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
        lambda s: s.as_module and s.no_python,
        lambda _: "--module and --no_python exclude each other; leave one of them out",
    ),
    (
        _is_no_program,
        lambda s: f"{s.target} is not a program that can be run; with --no_python name one, such as ./train.sh",
    ),
    (
        _is_a_file,
        lambda s: f"--log_dir {s.log_dir} is a file; name a folder, which is made if it is not there",
    ),
    (
        _is_forbidden,
        lambda s: f"--log_dir {s.log_dir} cannot be written; name another folder",
    ),
    (
        lambda s: s.log_dir is not None and s.console is Console.ALL,
        lambda _: "--console all cannot be had with --log_dir; use --console prefix or --console main",
    ),
    (
        _place_differs,
        lambda s: (
            f"--num_processes {s.num_processes}, and {s.place and s.place.origin} says that {s.place and s.place.size} "
            "are there already; start one task on each machine (srun --ntasks-per-node=1), or leave it out"
        ),
    ),
    (
        lambda s: s.place is not None and s.max_restarts > 0,
        lambda _: (
            "--max_restarts cannot start processes again that srun or mpirun has started; start one task on each "
            "machine (srun --ntasks-per-node=1)"
        ),
    ),
    (
        lambda s: s.place is not None and s.place.size != s.place.local_size and not s.main_process_ip,
        lambda _: "processes on several machines need --main_process_ip, the address of the machine of rank 0",
    ),
    (
        lambda s: s.place is not None and s.needs_watching,
        lambda _: "--log_dir and --console are not for tasks of srun or mpirun; use srun --output and srun --label",
    ),
    (
        _needs_c10d,
        lambda _: (
            "--rdzv_backend static numbers a fixed set of machines once: it cannot start again or let machines come "
            "and go; use --rdzv_backend c10d, or leave out --max_restarts and MIN:MAX"
        ),
    ),
    (_has_no_torch, lambda _: NO_TORCH),
)
