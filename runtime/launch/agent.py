"""Several processes: torch elastic starts them, watches them, restarts and stops them.

Imports torch. Ours on top of elastic: workers start through `child.py`, one failure is shown instead of all, and
nothing is left in the temporary folder.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.distributed import DistError
from torch.distributed.elastic.agent.server.api import RunResult, WorkerGroup, WorkerSpec, WorkerState
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
from torch.distributed.elastic.rendezvous import RendezvousError, RendezvousHandler, RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from runtime.launch.failure import Exit, cause, describe, read_note
from runtime.launch.share import DEFAULT_PORT, Share
from runtime.launch.spec import LaunchError, LaunchSpec

_CHILD = Path(__file__).with_name("child.py")
_MONITOR_INTERVAL_S = 0.1  # torchrun's
_RENDEZVOUS_TIMEOUT_S = 900  # torchrun's: machines of one job may boot minutes apart


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def run(spec: LaunchSpec, share: Share, tell: Callable[[str], None] = _to_stderr) -> int:
    """The exit status of the launch: that of the failed worker, or 128 + the signal that ended it, or 0.

    Workers inherit this process' environment (`env.environment`).

    Args:
        tell: is given the text of the failure that ended it; of those that were followed by a restart stderr is told.

    Raises:
        LaunchError: the machines did not find each other.
    """
    if not spec.debug:
        _silence_elastic()
    with tempfile.TemporaryDirectory(prefix="runtime-launch-", ignore_cleanup_errors=True) as folder:
        handler = _rendezvous(spec)
        agent = _Agent(_worker_spec(spec, share, handler), DefaultLogsSpecs(log_dir=folder), tell)
        try:
            agent.run()
        except SignalException as received:
            sys.stderr.write(f"runtime launch: stopped by {received.sigval.name}\n")
            return 128 + received.sigval
        except (RendezvousError, DistError) as error:
            raise LaunchError(_meeting_failed(spec)) from error
        finally:
            handler.shutdown()
    return agent.status


class _Agent(LocalElasticAgent):
    """Elastic's agent, which says what failed in our words."""

    def __init__(self, spec: WorkerSpec, logs_specs: DefaultLogsSpecs, tell: Callable[[str], None]) -> None:
        super().__init__(spec, logs_specs)
        self.status = 0
        self._failures = 0
        self._tell = tell

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        result: RunResult = super()._monitor_workers(worker_group)
        if result.state is WorkerState.FAILED:
            exits = [
                Exit(rank, failure.exitcode, read_note(failure.error_file)) for rank, failure in result.failures.items()
            ]
            first = cause(exits, time.time_ns())
            self.status = first.status
            self._failures += 1
            most = worker_group.spec.max_restarts
            restart = f"restart {self._failures} of {most}" if self._failures <= most else None
            tell = _to_stderr if restart else self._tell
            tell(describe(first, worker_group.workers[0].world_size, restart))
        else:
            self.status = 0
        return result


def _worker_spec(spec: LaunchSpec, share: Share, handler: RendezvousHandler) -> WorkerSpec:
    kind = "module" if spec.as_module else "script"
    arguments = (str(_CHILD), str(os.getpid()), kind, spec.target, *spec.arguments)
    return WorkerSpec(
        role="default",
        local_world_size=share.processes_here,
        entrypoint=sys.executable,
        args=tuple(argument.replace("$", "$$") for argument in arguments),  # elastic fills in templates: $x, $$
        rdzv_handler=handler,
        max_restarts=spec.max_restarts,
        monitor_interval=_MONITOR_INTERVAL_S,
        master_addr=spec.main_process_ip if spec.num_machines > 1 else None,
        master_port=(spec.main_process_port or DEFAULT_PORT) if spec.num_machines > 1 else None,
    )


def _rendezvous(spec: LaunchSpec) -> RendezvousHandler:
    """Where the machines meet.

    One machine meets itself at a port that is bound when it is chosen (c10d, port 0), and workers share that store, so
    two launches at once never take each other's. Several machines use the static meeting, because only that one keeps
    `--machine_rank`: the c10d one numbers machines by their addresses, and process 0 could be anywhere.
    """
    if spec.num_machines == 1:
        meeting: dict[str, Any] = {
            "backend": "c10d",
            "endpoint": f"127.0.0.1:{spec.main_process_port or 0}",
            "run_id": uuid.uuid4().hex,
            "local_addr": "127.0.0.1",  # not the host's name: nothing to look up, nothing to fail
            "is_host": True,
        }
    else:
        meeting = {
            "backend": "static",
            "endpoint": f"{spec.main_process_ip}:{spec.main_process_port or DEFAULT_PORT}",
            "run_id": "runtime-launch",  # every machine has to say the same
            "rank": spec.machine_rank,
        }
    machines = spec.num_machines
    return get_rendezvous_handler(
        RendezvousParameters(**meeting, min_nodes=machines, max_nodes=machines, timeout=_RENDEZVOUS_TIMEOUT_S)
    )


def _meeting_failed(spec: LaunchSpec) -> str:
    port = spec.main_process_port or DEFAULT_PORT
    if spec.num_machines == 1:
        return f"this machine could not listen on 127.0.0.1:{spec.main_process_port or 'any port'}; see --debug"
    return (
        f"machine {spec.machine_rank} of {spec.num_machines} could not meet the others at "
        f"{spec.main_process_ip}:{port}; check that machine 0 has this address, that the port is open and free, "
        "and that every machine was started"
    )


def _silence_elastic() -> None:
    """Elastic logs each signal it sends and each failure it sees; what matters of that is in our own lines."""
    logger = logging.getLogger("torch.distributed.elastic")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
