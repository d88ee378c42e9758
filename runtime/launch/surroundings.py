"""What the program that started this launcher says: SLURM's `srun`, MPI's `mpirun`, torchrun's endpoint.

One task on each machine is a launcher, which starts the processes of its machine: it is told which machine it is.
Several tasks on a machine are the processes themselves: each of them is told its place, and starts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_PORTS = range(10_000, 30_000)  # below the ports that Linux gives to whoever asks for any


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which process this is, where another program has started all of them."""

    rank: int
    size: int
    local_rank: int
    local_size: int
    origin: str
    """The variable that says the rank."""


@dataclass(frozen=True, slots=True)
class Said:
    """A value for an option, and the variable that it comes from."""

    value: str
    variable: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known from outside."""

    place: Place | None = None
    values: Mapping[str, Said] = field(default_factory=dict)
    """By the name of the option."""
    notice: str | None = None
    """One line for the user, or nothing."""


def surroundings(environ: Mapping[str, str]) -> Surroundings:
    """What the first of SLURM, MPI and torchrun says; nothing in a process that a launcher has started."""
    if "LOCAL_RANK" in environ:  # a launch inside of a launched process is one of its own
        return Surroundings()
    for ask in (_slurm, _mpi):
        found = ask(environ)
        if found is not None:
            return found
    return Surroundings(values=_endpoint(environ), notice=_notice(environ))


def hosts(node_list: str) -> list[str]:
    """The hosts of SLURM's short form: `gpu[01-03,7],login` is gpu01, gpu02, gpu03, gpu7, login."""
    return [host for word in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", node_list) for host in _expanded(word.strip())]


def _expanded(word: str) -> Iterator[str]:
    match = re.fullmatch(r"([^\[]*)\[([^\]]*)\](.*)", word)
    if match is None:
        yield word
        return
    head, ranges, tail = match.groups()
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        for number in range(int(first), int(last or first) + 1):
            for end in _expanded(tail):
                yield f"{head}{number:0{len(first)}d}{end}"


def _slurm(environ: Mapping[str, str]) -> Surroundings | None:
    """What `srun` says. In a batch script outside of it there is only one launcher, for one machine."""
    tasks, machines = _number(environ, "SLURM_STEP_NUM_TASKS"), _number(environ, "SLURM_STEP_NUM_NODES")
    rank, machine = _number(environ, "SLURM_PROCID"), _number(environ, "SLURM_NODEID")
    if tasks is None or machines is None or rank is None or machine is None or tasks == 1:
        return None
    meeting = _slurm_meeting(environ)
    if tasks == machines:
        values = {"num_machines": Said(str(machines), "SLURM_STEP_NUM_NODES")}
        return Surroundings(values={**values, "machine_rank": Said(str(machine), "SLURM_NODEID"), **meeting})
    place = Place(
        rank=rank,
        size=tasks,
        local_rank=_number(environ, "SLURM_LOCALID") or 0,
        local_size=_tasks_here(environ.get("SLURM_STEP_TASKS_PER_NODE", ""), machine) or tasks,
        origin="SLURM_PROCID",
    )
    return Surroundings(place=place, values=meeting)


def _slurm_meeting(environ: Mapping[str, str]) -> dict[str, Said]:
    """Machine 0 of the step, and a port that no other step of any job is likely to have."""
    job, step = _number(environ, "SLURM_JOB_ID") or 0, _number(environ, "SLURM_STEP_ID") or 0
    found = hosts(environ.get("SLURM_STEP_NODELIST", ""))
    port = {"main_process_port": Said(str(_PORTS[(job * 31 + step) % len(_PORTS)]), "SLURM_JOB_ID")}
    return {"main_process_ip": Said(found[0], "SLURM_STEP_NODELIST"), **port} if found else port


def _tasks_here(text: str, machine: int) -> int | None:
    """How many tasks the machine with this number has: `2(x3),1` is 2, 2, 2, 1."""
    counts: list[int] = []
    for number, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
        counts += [int(number)] * int(times or 1)
    return counts[machine] if machine < len(counts) else None


# rank, number of processes, and the same on this machine: Open MPI, Intel MPI and MPICH, MVAPICH
_MPI = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"),
)


def _mpi(environ: Mapping[str, str]) -> Surroundings | None:
    for names in _MPI:
        rank, size, local_rank, local_size = (_number(environ, name) for name in names)
        if rank is None or size is None or local_rank is None or local_size is None or size == 1:
            continue
        if local_size == 1:
            numbers = {"num_machines": Said(str(size), names[1]), "machine_rank": Said(str(rank), names[0])}
            return Surroundings(values=numbers)
        place = Place(rank=rank, size=size, local_rank=local_rank, local_size=local_size, origin=names[0])
        return Surroundings(place=place)
    return None


def _endpoint(environ: Mapping[str, str]) -> dict[str, Said]:
    """What torchrun has one name for: the address and the port."""
    host, _, port = environ.get("PET_RDZV_ENDPOINT", "").rpartition(":")
    if not port.isdecimal():
        host, port = environ.get("PET_RDZV_ENDPOINT", ""), ""
    said = {"main_process_ip": host.strip("[]"), "main_process_port": port}
    return {name: Said(value, "PET_RDZV_ENDPOINT") for name, value in said.items() if value}


def _notice(environ: Mapping[str, str]) -> str | None:
    nodes = _number(environ, "SLURM_JOB_NUM_NODES") or 1
    if nodes == 1 or "SLURM_STEP_NUM_TASKS" in environ or "PET_NNODES" in environ:
        return None
    return f"the job has {nodes} machines and this runs on one of them; `srun runtime launch ...` uses all"


def _number(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "")
    return int(text) if text.isdecimal() else None
