"""What the user asked `runtime launch` for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from runtime.config import MixedPrecision
from runtime.launch.surroundings import Place

DEFAULT_PORT = 29500  # torchrun's and Accelerate's


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
    def is_script(self) -> bool:
        """Whether the target is the path of a script."""
        return not (self.as_module or self.no_python)

    @property
    def meeting(self) -> Meeting:
        """How the machines find each other: so that ranks are as asked for, unless machines come and go."""
        if self.rdzv_backend is not None:
            return self.rdzv_backend
        return Meeting.C10D if self.machines.is_elastic or self.max_restarts else Meeting.STATIC

    @property
    def meets_statically(self) -> bool:
        """Whether there are several machines, and `--machine_rank` numbers them."""
        return self.machines.are_several and self.meeting is Meeting.STATIC

    @property
    def meeting_port(self) -> int:
        """The port at which machines meet, the same on all of them."""
        return self.main_process_port or DEFAULT_PORT

    @property
    def endpoint(self) -> str:
        """The address and the port at which machines meet."""
        host = self.main_process_ip or ""
        return f"{f'[{host}]' if ':' in host else host}:{self.meeting_port}"  # brackets: IPv6

    @property
    def needs_watching(self) -> bool:
        """Whether even a single process here is not simply the script."""
        keeps_lines = self.log_dir is not None or self.console is Console.PREFIX
        return self.machines.are_several or self.max_restarts > 0 or keeps_lines

    @property
    def may_start_again(self) -> bool:
        """Whether workers can be started more than once: after a failure, or because machines come and go."""
        return self.max_restarts > 0 or self.machines.is_elastic
