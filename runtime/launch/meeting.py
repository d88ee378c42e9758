"""Where the machines of a launch meet: torch elastic's rendezvous, with the settings that fit.

One machine meets itself at a port that is bound when it is chosen (c10d, port 0), and workers share that store, so two
launches at once never take each other's. Several machines use the static meeting, because only that one numbers them
by `--machine_rank`: the c10d one numbers them by their addresses, and process 0 could be anywhere. It is taken where
machines may come and go, or start again after a failure, which the static one cannot. Imports torch.
"""

from __future__ import annotations

import uuid
from typing import Any

from torch.distributed.elastic.rendezvous import RendezvousHandler, RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from runtime.hardware import address_towards
from runtime.launch.spec import LaunchSpec, Meeting

_TIMEOUT_S = 900  # torchrun's for the static one, and ours for both: machines of one job may boot minutes apart
_RUN_ID = "runtime-launch"  # every machine has to say the same; the port tells two launches apart


def rendezvous(spec: LaunchSpec) -> RendezvousHandler:
    """Torch elastic's side of the meeting; nobody has been met yet, but the port is bound where this machine has it.

    Raises:
        RendezvousError: this machine cannot listen, or the store of machine 0 cannot be reached.
        ValueError: a setting of `--rdzv_conf` that is not understood.
    """
    meeting = _alone(spec) if not spec.machines.are_several else _MEETINGS[spec.meeting](spec)
    machines = spec.machines
    parameters = RendezvousParameters(
        **{**meeting, **spec.rdzv_conf}, min_nodes=machines.least, max_nodes=machines.most
    )
    return get_rendezvous_handler(parameters)


def failure(spec: LaunchSpec) -> str:
    """What to tell the user when the machines did not find each other."""
    if not spec.machines.are_several:
        return f"this machine could not listen on 127.0.0.1:{spec.main_process_port or 'any port'}; see --debug"
    this = "this machine" if spec.machine_rank is None else f"machine {spec.machine_rank}"
    return (
        f"{this} of {spec.machines} could not meet the others at {spec.endpoint}; check that machine 0 has this "
        "address, that the port is open and free, and that every machine was started"
    )


def _alone(spec: LaunchSpec) -> dict[str, Any]:
    return {
        "backend": "c10d",
        "endpoint": f"127.0.0.1:{spec.main_process_port or 0}",
        "run_id": uuid.uuid4().hex,
        "local_addr": "127.0.0.1",  # not the host's name: nothing to look up, nothing to fail
        "is_host": True,
    }


def _static(spec: LaunchSpec) -> dict[str, Any]:
    return {
        "backend": "static",
        "endpoint": spec.endpoint,
        "run_id": _RUN_ID,
        "rank": spec.machine_rank or 0,
        "timeout": _TIMEOUT_S,
    }


def _c10d(spec: LaunchSpec) -> dict[str, Any]:
    meeting = {
        "backend": "c10d",
        "endpoint": spec.endpoint,
        "run_id": _RUN_ID,
        # By default the host's name, which other machines often cannot look up, or look up as a loopback address.
        "local_addr": address_towards(spec.main_process_ip or ""),
        "join_timeout": _TIMEOUT_S,
        "read_timeout": _TIMEOUT_S,
    }
    if spec.machine_rank is not None:  # else elastic compares the address with those of this machine
        meeting["is_host"] = spec.machine_rank == 0
    return meeting


_MEETINGS = {Meeting.STATIC: _static, Meeting.C10D: _c10d}
