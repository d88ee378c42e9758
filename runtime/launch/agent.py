"""Several processes: torch elastic starts them, watches them, restarts and stops them.

Imports torch. Ours on top of elastic: workers start through `child.py`, one failure is shown instead of all, and
nothing is left in the temporary folder.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from torch.distributed import DistError
from torch.distributed.elastic.agent.server.api import RunResult, WorkerGroup, WorkerSpec, WorkerState
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.elastic.multiprocessing.api import SubprocessContext
from torch.distributed.elastic.rendezvous import RendezvousClosedError, RendezvousError, RendezvousHandler

from runtime.devices import kind_of
from runtime.errors import WorldError
from runtime.launch import meeting
from runtime.launch.env import environment
from runtime.launch.failure import Exit, cause, describe, describe_stop, read_note
from runtime.launch.fork_client import ForkServer, forked_by
from runtime.launch.logs import PREFIX, Logs
from runtime.launch.share import Share
from runtime.launch.spec import Console, LaunchError, LaunchSpec

_CHILD = Path(__file__).with_name("child.py")
_HANGUPS = [getattr(signal, name) for name in ("SIGHUP",) if hasattr(signal, name)]  # Windows has none


def _to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def run(
    spec: LaunchSpec, share: Share, tell: Callable[[str], None] = _to_stderr, server: ForkServer | None = None
) -> int:
    """The exit status of the launch: that of the failed worker, or 128 + the signal that ended it, or 0.

    Workers inherit this process' environment (`env.environment`).

    Args:
        tell: is given the text of the failure that ended it; of those that were followed by a restart stderr is told.
        server: forks the workers; without one each is an interpreter of its own.

    Raises:
        LaunchError: the machines did not find each other.
    """
    if not spec.debug:
        _silence_elastic()
    try:
        handler = meeting.rendezvous(spec)
    except (RendezvousError, DistError) as error:
        raise LaunchError(meeting.failure(spec)) from error
    except ValueError as error:
        raise LaunchError(f"--rdzv_conf: {error}") from error
    needed = environment({**os.environ, **_device_variables(spec, share)})
    with needed, tempfile.TemporaryDirectory(prefix="runtime-launch-", ignore_cleanup_errors=True) as folder:
        logs = Logs(folder, spec.log_dir, spec.console)
        agent = _Agent(_worker_spec(spec, share, handler), logs, tell, _prefix(spec), server)
        try:
            return agent.launch(spec)
        finally:
            if logs.folder is not None:
                _to_stderr(f"runtime launch: the lines of each process are in {logs.folder}\n")
            if agent.closes_meeting:
                handler.shutdown()


class _Agent(LocalElasticAgent):
    """Elastic's agent, which says what failed in our words."""

    def __init__(
        self, spec: WorkerSpec, logs: Logs, tell: Callable[[str], None], prefix: str | None, server: ForkServer | None
    ) -> None:
        super().__init__(spec, logs, log_line_prefix_template=prefix)
        self.closes_meeting = True
        """Whether the end here is the end everywhere, and the place where the machines met is still there."""
        self._server = server
        self._status = 0
        self._failures = 0
        self._tell = tell
        self._has_met = False

    def launch(self, spec: LaunchSpec) -> int:
        """Run to the end; the exit status.

        Raises:
            LaunchError: the machines did not find each other.
        """
        try:
            self.run()
        except SignalException as received:
            self.closes_meeting = False  # other machines may go on, with another one in the place of this
            _to_stderr(describe_stop(received.sigval, self._exits(), self._processes, time.time_ns()))
            return 128 + received.sigval
        except (RendezvousError, DistError) as error:
            if not self._has_met:
                raise LaunchError(meeting.failure(spec)) from error
            self.closes_meeting = False
            closed = isinstance(error, RendezvousClosedError)
            reason = "another machine has ended the run" if closed else "the machine where all meet is gone"
            _to_stderr(f"runtime launch: {reason}; the processes here were stopped\n")
            return self._status or 1
        return self._status

    @property
    def _processes(self) -> int:
        """Over all machines."""
        return self._worker_group.workers[0].world_size

    def _start_workers(self, worker_group: WorkerGroup) -> dict[int, Any]:
        self._has_met = True
        with _deaf_to_hangups(), forked_by(self._server) if self._server else nullcontext():
            workers: dict[int, Any] = super()._start_workers(worker_group)
        return workers

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        result: RunResult = super()._monitor_workers(worker_group)
        if result.state is WorkerState.FAILED:
            exits = [
                Exit(rank, failure.exitcode, read_note(failure.error_file)) for rank, failure in result.failures.items()
            ]
            first = cause(exits, time.time_ns())
            self._status = first.status
            self._failures += 1
            most = worker_group.spec.max_restarts
            restart = f"restart {self._failures} of {most}" if self._failures <= most else None
            tell = _to_stderr if restart else self._tell
            tell(describe(first, self._processes, restart))
        else:
            self._status = 0
        return result

    def _restart_workers(self, worker_group: WorkerGroup) -> None:
        if worker_group.state is WorkerState.HEALTHY:
            _to_stderr("runtime launch: a machine came, or starts again: starting again together with it\n")
        super()._restart_workers(worker_group)

    def _shutdown(self, death_sig: signal.Signals = signal.SIGTERM, *rest: Any, **named: Any) -> None:
        """End the workers; what else there is to say about it differs between versions of torch."""
        try:
            super()._shutdown(death_sig, *rest, **named)
        except SignalException:  # asked a second time: the patience is over
            super()._shutdown(signal.SIGKILL, *rest, **named)
            raise

    def _exits(self) -> list[Exit]:
        """How the workers ended that this machine ran last."""
        context = self._pcontext
        if not isinstance(context, SubprocessContext):
            return []
        return [
            Exit(worker.global_rank, running.proc.returncode or 0, read_note(context.error_files[worker.local_rank]))
            for worker in self._worker_group.workers
            if (running := context.subprocess_handlers.get(worker.local_rank)) is not None
        ]


@contextmanager
def _deaf_to_hangups() -> Iterator[None]:
    """A context after which SIGHUP is ignored if it was before (`nohup`): elastic takes it when it starts workers."""
    ignored = [number for number in _HANGUPS if signal.getsignal(number) is signal.SIG_IGN]
    try:
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


def _worker_spec(spec: LaunchSpec, share: Share, handler: RendezvousHandler) -> WorkerSpec:
    binds = spec.affinity and share.kind.is_host
    kind = "program" if spec.no_python else "module" if spec.as_module else "script"
    arguments = (str(_CHILD), str(os.getpid()), "bind" if binds else "", kind, spec.target, *spec.arguments)
    return WorkerSpec(
        role="default",
        local_world_size=share.processes_here,
        entrypoint=sys.executable,
        args=tuple(argument.replace("$", "$$") for argument in arguments),  # elastic fills in templates: $x, $$
        rdzv_handler=handler,
        max_restarts=spec.max_restarts,
        monitor_interval=spec.monitor_interval,
        master_addr=spec.main_process_ip if spec.meets_statically else None,
        master_port=spec.meeting_port if spec.meets_statically else None,
        **(_near_gpus() if spec.affinity and not binds else {}),
    )


def _near_gpus() -> dict[str, Any]:
    """What torchrun does for --numa-binding=node: the cores of the NUMA node of each process' GPU.

    Raises:
        LaunchError: this machine or this version of PyTorch cannot do that.
    """
    try:
        from torch.numa.binding import AffinityMode, NumaOptions
    except ImportError:
        raise LaunchError("--enable_cpu_affinity with GPUs needs a newer PyTorch (torch.numa); leave it out") from None
    if shutil.which("numactl") is None:
        raise LaunchError("--enable_cpu_affinity with GPUs needs the program numactl; install it, or leave it out")
    return {"numa_options": NumaOptions(affinity_mode=AffinityMode.NODE)}


def _device_variables(spec: LaunchSpec, share: Share) -> Mapping[str, str]:
    """What the devices have to find in the environment before their processes start.

    Raises:
        LaunchError: they cannot be shared out like that.
    """
    try:
        return kind_of(share.kind.name).launch_variables(spec.machines.least, share.processes_here)
    except WorldError as error:
        raise LaunchError(f"{error} --processes_per_machine says how many.") from error


def _prefix(spec: LaunchSpec) -> str | None:
    has_files = spec.log_dir is not None or spec.console is Console.PREFIX
    return PREFIX if has_files else None


def _silence_elastic() -> None:
    """Elastic logs each signal it sends and each failure it sees; what matters of that is in our own lines."""
    logger = logging.getLogger("torch.distributed.elastic")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
