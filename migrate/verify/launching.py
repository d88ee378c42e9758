"""A run as child processes: how they are started, and when they are ended. None of them is left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

RECORDER = Path(__file__).resolve().parent / "recorder" / "__main__.py"
HOME = Path(__file__).resolve().parents[2]
INSTALLED = {"site-packages", "dist-packages"}  # found anyway
GRACE_S = 15.0  # beyond its limit, by which a process ends itself; importing torch is not counted there
STARTING_S = 60.0  # for importing torch on a busy machine
PLACEMENT = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR", "MASTER_PORT",
)  # fmt: skip
PREFIXES = ("TORCHELASTIC_", "ACCELERATE_", "FSDP_", "ROLE_", "PYTEST_")


@dataclass(frozen=True, slots=True)
class Start:
    """How a run is started."""

    processes: int = 1
    target: str = "runtime"  # what starts several processes: "runtime", "accelerate", or "torchrun"
    cpu: bool = False  # leave the GPUs alone
    launched: bool = False  # as the only process that torchrun starts
    folder: str = ""  # the user's, and
    copy: str = ""  # the copy of it that is run: what PYTHONPATH names is looked for there

    def in_copy(self, path: str) -> str:
        """A path of the user's folder as the run sees it; any other as it is."""
        real = os.path.realpath(path)
        if self.folder and (real == self.folder or real.startswith(self.folder + os.sep)):
            return os.path.join(self.copy, os.path.relpath(real, self.folder)) if real != self.folder else self.copy
        return os.path.abspath(path)


@dataclass(frozen=True, slots=True)
class Exit:
    """How the children ended."""

    status: int
    output: str  # the end of what they printed
    seconds: float


def run(start: Start, order: Path, work: Path, limit_s: float) -> Exit:
    """Start the recorder with an order and wait for it; on any way out of here no child is left."""
    began = time.monotonic()
    nowhere = work / "nowhere"  # not the user's folder: the launcher must not import from there
    nowhere.mkdir(exist_ok=True)
    log = work / "log"
    with log.open("wb") as output:
        child = subprocess.Popen(
            [*_command(start), str(RECORDER), str(order)],
            cwd=nowhere,
            env=environment(start, work),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            status = child.wait(limit_s + GRACE_S + STARTING_S)
        except subprocess.TimeoutExpired:
            status = -signal.SIGKILL
        finally:
            _end(child)
    text = log.read_bytes()[-20_000:].decode("utf-8", "replace")
    return Exit(status, text, time.monotonic() - began)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and all that it started; the launcher ends its processes when it is asked to, or dies."""
    for ending in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, ending)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(5)
            if ending is not signal.SIGTERM:
                return


def _command(start: Start) -> list[str]:
    if start.processes == 1:
        return [sys.executable]
    if start.target != "runtime":  # accelerate's own launcher starts several processes on a CPU through MPI only
        return [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc_per_node",
            str(start.processes),
            "--master_port",
            free_port(),
        ]
    device = ["--cpu"] if start.cpu else []
    return [sys.executable, "-m", "runtime", "launch", "-n", str(start.processes), *device]


def free_port() -> str:
    """A port that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def environment(start: Start, work: Path) -> dict[str, str]:
    """The user's own, without a launch that this process is part of, with what makes runs repeat themselves."""
    kept = {
        name: value for name, value in os.environ.items() if name not in PLACEMENT and not name.startswith(PREFIXES)
    }
    paths = [start.in_copy(path) for path in kept.get("PYTHONPATH", "").split(os.pathsep) if path]
    if HOME.name not in INSTALLED and str(HOME) not in paths:
        paths.append(str(HOME))  # run from a checkout: `runtime` lies beside `migrate`
    temporary = work / "tmp"
    temporary.mkdir(exist_ok=True)
    fixed = {
        "OMP_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(paths),
        "TMPDIR": str(temporary),
        "MPLCONFIGDIR": str(temporary),
        "CUDA_CACHE_PATH": str(temporary),
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # of a fixed size: else cuBLAS differs from run to run
        "MPLBACKEND": "agg",  # no window
        "WANDB_MODE": kept.get("WANDB_MODE", "offline"),  # a run that only proves something is not one to upload
    }
    if start.cpu:
        fixed |= {"CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"}
    if start.launched:
        fixed |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1"}
        fixed |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    return kept | fixed
