"""How the processes of a launch are shared out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from runtime import hardware
from runtime.config import OFF
from runtime.kinds import CPU, MASKS, Kind
from runtime.launch import machine
from runtime.launch.spec import LaunchError, LaunchSpec
from runtime.launch.surroundings import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many processes a launch starts, and with what."""

    processes: int
    """Over all machines; with MIN:MAX machines over the least of them."""
    processes_here: int
    threads: int | None
    """OpenMP threads of each process; None leaves torch's own default."""
    kind: Kind = CPU
    """The kind of device that was counted; not asked for where it does not matter."""
    interface: str | None = None
    """The network interface towards the machine where all meet, where there are several."""
    notice: str | None = None
    """One line for the user, or nothing."""


def divide(spec: LaunchSpec, environ: Mapping[str, str]) -> Share:
    """The processes that this machine runs for `spec`.

    Raises:
        LaunchError: more processes than GPUs, a GPU that is not there, or a port that is taken.
    """
    if spec.place is not None:
        return _one_of(spec, spec.place, environ)
    cpu = spec.cpu or (spec.variables or environ).get("ACCELERATE_USE_CPU", "").lower() not in OFF
    gpus = 0 if cpu or not _gpus_matter(spec) else _usable_gpus(spec, environ)
    here = _processes_here(spec, gpus)
    if gpus and here > gpus:
        raise LaunchError(
            f"{here} processes on this machine, which has {_count(gpus, 'GPU')} to use: each process needs its own; "
            f"use {_option_for(spec, gpus)}, or --cpu"
        )
    _check_port(spec)
    falls_back = not cpu and not gpus and here > 1
    return Share(
        processes=here * spec.machines.least,
        processes_here=here,
        threads=_threads(spec, here, environ),
        kind=machine.device_kind() if gpus else CPU,
        interface=_interface(spec),
        notice=f"no GPU found: {here} processes on the CPU (--cpu says so without this line)" if falls_back else None,
    )


def _one_of(spec: LaunchSpec, place: Place, environ: Mapping[str, str]) -> Share:
    """This process alone: the others have been started, too."""
    return Share(
        processes=place.size,
        processes_here=1,
        threads=_threads(spec, _sharing_cores(place), environ),
        interface=_interface(spec),
    )


def _sharing_cores(place: Place) -> int:
    """How many processes share the cores that this one may use: none where each has been bound to its own."""
    return place.local_size if machine.core_count() == (os.cpu_count() or 1) else 1


def _processes_here(spec: LaunchSpec, gpus: int) -> int:
    if spec.processes_per_machine is not None:
        return spec.processes_per_machine
    return gpus or 1 if spec.num_processes is None else spec.num_processes // spec.machines.least


def _option_for(spec: LaunchSpec, gpus: int) -> str:
    if spec.processes_per_machine is not None:
        return f"--processes_per_machine {gpus}"
    return f"--num_processes {gpus * spec.machines.least}"


def _gpus_matter(spec: LaunchSpec) -> bool:
    """Counting may cost an import of torch: not for one process that takes whatever device there is."""
    is_one = spec.processes_per_machine == 1 or spec.num_processes == spec.machines.least
    return not is_one or spec.gpu_ids is not None


def _usable_gpus(spec: LaunchSpec, environ: Mapping[str, str]) -> int:
    present = machine.gpu_count()
    if spec.gpu_ids is None:
        return present
    if not any(name in environ for name in MASKS):
        # else torch counted what is visible, and --gpu_ids names what is installed
        missing = [name for name in spec.gpu_ids if not present or (name.isdigit() and int(name) >= present)]
        if missing:
            has = f"GPUs 0 to {present - 1}" if present else "no GPU that torch can use"
            what = f"--gpu_ids names {', '.join(missing)}, and this machine has {has}"
            raise LaunchError(f"{what}; name others, or --cpu in their place")
    return len(spec.gpu_ids)


def _threads(spec: LaunchSpec, here: int, environ: Mapping[str, str]) -> int | None:
    """One process keeps torch's default: another number of threads would add up floats in another order."""
    if spec.threads_per_process is not None:
        return spec.threads_per_process
    if here == 1 or "OMP_NUM_THREADS" in environ:
        return None
    return max(1, machine.core_count() // here)


def _interface(spec: LaunchSpec) -> str | None:
    """Gloo would take the one of the host's name, which on many systems is an address that others cannot reach."""
    are_several = spec.machines.are_several or (spec.place is not None and spec.place.size > spec.place.local_size)
    if not are_several or not spec.main_process_ip:
        return None
    address = hardware.address_towards(spec.main_process_ip)
    return address and machine.interface_of(address)


def _check_port(spec: LaunchSpec) -> None:
    port = spec.main_process_port
    if port and not spec.machines.are_several and not machine.port_is_free(port):
        raise LaunchError(f"--main_process_port {port} is in use; leave it out, and a free one is picked")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
