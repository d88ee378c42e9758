"""The environment of launched processes: the only module that writes one.

A script learns its settings the way it does under `torchrun` and `accelerate launch`: RANK, WORLD_SIZE, LOCAL_RANK,
MASTER_ADDR and MASTER_PORT (set per process by torch elastic), and the ACCELERATE_* variables below.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from runtime.launch.share import Share
from runtime.launch.spec import LaunchSpec

# A launch inside a launched process (a job step, a notebook) must not inherit the place of its parent.
PLACEMENT = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "ROLE_RANK",
    "ROLE_WORLD_SIZE",
    "ROLE_NAME",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_ERROR_FILE",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_USE_AGENT_STORE",
)

#: Sets of texts come in another order in each process unless Python hashes alike in all of them: a vocabulary that is
#: made of a set would be another one on each.
ORDERED = {"PYTHONHASHSEED": "0"}


def outside(environ: Mapping[str, str]) -> Mapping[str, str]:
    """`environ` without the place of a launched process, where this launcher runs inside of one."""
    if "LOCAL_RANK" not in environ:
        return environ
    return {name: value for name, value in environ.items() if name not in PLACEMENT}


def child_environment(spec: LaunchSpec, share: Share, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` as the launched processes see it: without a parent's placement, with the settings that were given."""
    kept = {name: value for name, value in environ.items() if name not in PLACEMENT}
    defaults = ORDERED if _are_several(spec, share) else {}
    if share.interface:
        defaults = {**defaults, "GLOO_SOCKET_IFNAME": share.interface}
    return defaults | kept | dict(spec.variables) | _settings(spec, share) | _placement(spec)


def _are_several(spec: LaunchSpec, share: Share) -> bool:
    return share.processes > 1 or spec.machines.are_several or spec.place is not None


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Make `variables` the environment, for torch elastic: its workers inherit that of the launching process."""
    before = dict(os.environ)
    _become(variables)
    try:
        yield
    finally:
        _become(before)


def _settings(spec: LaunchSpec, share: Share) -> dict[str, str]:
    values = {
        "ACCELERATE_USE_CPU": "true" if spec.cpu else None,
        "ACCELERATE_MIXED_PRECISION": spec.mixed_precision and spec.mixed_precision.value,
        "ACCELERATE_DEBUG_MODE": "true" if spec.debug else None,
        "ACCELERATE_CPU_AFFINITY": "1" if spec.affinity else None,
        share.kind.mask: _visible(spec),
        "OMP_NUM_THREADS": share.threads or None,
        # Elastic keeps one store for all attempts, and Gloo finds the addresses of the dead in it (torch 2.13: a
        # restart hangs or fails). Without sharing, process 0 opens a fresh store each time.
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1" if spec.may_start_again else None,
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def _visible(spec: LaunchSpec) -> str | None:
    """The devices that a process may see: none on the CPU, so that what a script asks PyTorch itself agrees with it."""
    if spec.cpu:
        return ""
    return ",".join(spec.gpu_ids) if spec.gpu_ids else None


def _placement(spec: LaunchSpec) -> dict[str, str]:
    """What torch elastic gives a process, where `srun` or `mpirun` has started it in its place."""
    place = spec.place
    if place is None:
        return {}
    return {
        "RANK": str(place.rank),
        "WORLD_SIZE": str(place.size),
        "LOCAL_RANK": str(place.local_rank),
        "LOCAL_WORLD_SIZE": str(place.local_size),
        "MASTER_ADDR": spec.main_process_ip or "127.0.0.1",
        "MASTER_PORT": str(spec.meeting_port),
    }


def _become(variables: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(variables):
        del os.environ[name]
    os.environ.update(variables)
