"""What cannot be started whatever the machine has, and which two settings exclude each other.

Each case stands here once: `check` refuses it, and where two settings are the reason and come from places of different
strength, `settings.without_contradictions` lets the weaker give way before that.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from runtime.config import MixedPrecision
from runtime.launch.spec import Console, LaunchError, LaunchSpec

NO_TORCH = "torch is not installed in this Python; run pip install 'torch-migrate[runtime]'"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A kind of launch that is refused."""

    is_wrong: Callable[[LaunchSpec], bool]
    message: Callable[[LaunchSpec], str]
    between: tuple[str, str] | None = None
    """The names of two settings that exclude each other, where that is the reason."""
    first_stays: bool = False
    """Whether only the second of them may give way: how many machines there are is no detail."""


def check(spec: LaunchSpec) -> None:
    """Refuse what cannot be started whatever the machine has.

    Raises:
        LaunchError: the first thing that is wrong with `spec`.
    """
    for refusal in REFUSALS:
        if refusal.is_wrong(spec):
            raise LaunchError(refusal.message(spec))


def _similar(path: Path) -> str:
    """A hint at the file that was probably meant, or nothing."""
    folder = path.parent
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"did you mean {folder / close[0]}?" if close else "the script comes after the options of the launcher"


def _hiding(spec: LaunchSpec) -> Path | None:
    """The module beside a converted script that it would import in the place of this package."""
    script = Path(spec.target)
    places = (script.parent / "runtime" / "__init__.py", script.parent / "runtime.py")
    own = next((path for path in places if path.is_file()), None)
    if not spec.is_script or own is None or b"Accelerator" in own.read_bytes():
        return None  # nothing is there, or a copy of this package
    wanted = rb"^\s*from\s+runtime\s+import\s[^\n]*\bAccelerator\b"
    return own if re.search(wanted, script.read_bytes(), re.MULTILINE) else None


def _is_forbidden(spec: LaunchSpec) -> bool:
    if spec.log_dir is None:
        return False
    folder = Path(spec.log_dir).absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    return not os.access(there, os.W_OK | os.X_OK)


def _is_uneven(spec: LaunchSpec) -> bool:
    return (
        spec.num_processes is not None
        and not spec.machines.is_elastic
        and spec.num_processes % spec.machines.least != 0
    )


def _contradicts(spec: LaunchSpec) -> bool:
    each, all_of_them = spec.processes_per_machine, spec.num_processes
    return each is not None and all_of_them is not None and each * spec.machines.least != all_of_them


# Elastic's static meeting does not tell the other machines to start again: they would wait for a dead one.
_STATIC = (
    "--rdzv_backend static numbers a fixed set of machines once: it cannot start again or let machines come and go; "
    "use --rdzv_backend c10d, or leave out --max_restarts and MIN:MAX"
)

REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        lambda s: s.is_script and not Path(s.target).exists(),
        lambda s: f"no such file: {s.target}; {_similar(Path(s.target))}",
    ),
    Refusal(
        lambda s: s.is_script and Path(s.target).is_dir(),
        lambda s: f"{s.target} is a directory; name the script in it, or run a package with -m and its dotted name",
    ),
    Refusal(
        lambda s: s.is_script and s.target.endswith(".ipynb"),
        lambda s: f"{s.target} is a notebook, which Python does not run; `jupyter execute {s.target}` does",
    ),
    Refusal(
        lambda s: _hiding(s) is not None,
        lambda s: f"{s.target} imports Accelerator from runtime, and would find {_hiding(s)}; give that another name",
    ),
    Refusal(
        lambda s: s.num_processes is not None and s.num_processes < 1,
        lambda s: f"--num_processes {s.num_processes}: at least 1 is needed; leave it out for one process per GPU",
    ),
    Refusal(
        lambda s: s.processes_per_machine is not None and s.processes_per_machine < 1,
        lambda s: f"--processes_per_machine {s.processes_per_machine}: at least 1 is needed",
    ),
    Refusal(
        lambda s: s.machines.least < 1,
        lambda s: f"--num_machines {s.machines}: at least 1 is needed; leave it out for this machine alone",
    ),
    Refusal(
        lambda s: s.machines.most < s.machines.least,
        lambda s: f"--num_machines {s.machines}: MIN:MAX needs the smaller number first",
    ),
    Refusal(
        lambda s: s.machine_rank is not None and not 0 <= s.machine_rank < s.machines.most,
        lambda s: (
            f"--machine_rank {s.machine_rank} with --num_machines {s.machines}: ranks are 0 to {s.machines.most - 1}"
        ),
        between=("num_machines", "machine_rank"),
        first_stays=True,
    ),
    Refusal(
        lambda s: s.machines.are_several and not s.main_process_ip,
        lambda _: "several machines need --main_process_ip, the address of the machine with --machine_rank 0",
    ),
    Refusal(
        lambda s: s.machines.is_elastic and s.num_processes is not None,
        lambda s: (
            f"--num_processes {s.num_processes} is the total, which changes with --num_machines {s.machines}; "
            "use --processes_per_machine"
        ),
        between=("num_machines", "num_processes"),
        first_stays=True,
    ),
    Refusal(
        _contradicts,
        lambda s: (
            f"--processes_per_machine {s.processes_per_machine} on {s.machines} machines is not --num_processes "
            f"{s.num_processes}; leave one of them out"
        ),
        between=("num_processes", "processes_per_machine"),
    ),
    Refusal(
        lambda s: s.main_process_port is not None and not 0 <= s.main_process_port <= 65535,
        lambda s: f"--main_process_port {s.main_process_port}: ports are 1 to 65535; 0 picks a free one on one machine",
    ),
    Refusal(
        lambda s: s.machines.are_several and s.main_process_port == 0,
        lambda _: "--main_process_port 0 cannot work on several machines: all of them have to name the same port",
    ),
    Refusal(
        _is_uneven,
        lambda s: (
            f"--num_processes {s.num_processes} is the total and cannot be shared by {s.machines} machines; "
            f"use a multiple of {s.machines}"
        ),
    ),
    Refusal(
        lambda s: s.cpu and s.gpu_ids is not None,
        lambda _: "--cpu and --gpu_ids exclude each other; leave one of them out",
        between=("cpu", "gpu_ids"),
    ),
    Refusal(
        lambda s: s.cpu and s.mixed_precision is MixedPrecision.FP16,
        lambda _: "--mixed_precision fp16 needs a GPU; with --cpu use --mixed_precision bf16",
        between=("cpu", "mixed_precision"),
    ),
    Refusal(
        lambda s: s.threads_per_process is not None and s.threads_per_process < 1,
        lambda s: f"--num_cpu_threads_per_process {s.threads_per_process}: at least 1 is needed",
    ),
    Refusal(
        lambda s: s.max_restarts < 0,
        lambda s: f"--max_restarts {s.max_restarts}: 0 or more is needed",
    ),
    Refusal(
        lambda s: s.as_module and s.no_python,
        lambda _: "--module and --no_python exclude each other; leave one of them out",
        between=("module", "no_python"),
    ),
    Refusal(
        lambda s: s.no_python and shutil.which(s.target) is None,
        lambda s: f"{s.target} is not a program that can be run; with --no_python name one, such as ./train.sh",
    ),
    Refusal(
        lambda s: s.log_dir is not None and Path(s.log_dir).exists() and not Path(s.log_dir).is_dir(),
        lambda s: f"--log_dir {s.log_dir} is a file; name a folder, which is made if it is not there",
    ),
    Refusal(_is_forbidden, lambda s: f"--log_dir {s.log_dir} cannot be written; name another folder"),
    Refusal(
        lambda s: s.log_dir is not None and s.console is Console.ALL,
        lambda _: "--console all cannot be had with --log_dir; use --console prefix or --console main",
    ),
    Refusal(
        lambda s: s.place is not None and s.num_processes not in (None, s.place.size),
        lambda s: (
            f"--num_processes {s.num_processes}, and {s.place and s.place.origin} says that {s.place and s.place.size} "
            "are there already; start one task on each machine (srun --ntasks-per-node=1), or leave it out"
        ),
    ),
    Refusal(
        lambda s: s.place is not None and s.max_restarts > 0,
        lambda _: (
            "--max_restarts cannot start processes again that srun or mpirun has started; start one task on each "
            "machine (srun --ntasks-per-node=1)"
        ),
    ),
    Refusal(
        lambda s: s.place is not None and s.place.size != s.place.local_size and not s.main_process_ip,
        lambda _: "processes on several machines need --main_process_ip, the address of the machine of rank 0",
    ),
    Refusal(
        lambda s: s.place is not None and s.needs_watching,
        lambda _: "--log_dir and --console are not for tasks of srun or mpirun; use srun --output and srun --label",
    ),
    Refusal(
        lambda s: s.machines.is_elastic and s.meets_statically,
        lambda _: _STATIC,
        between=("num_machines", "rdzv_backend"),
        first_stays=True,
    ),
    Refusal(
        lambda s: s.max_restarts > 0 and s.meets_statically,
        lambda _: _STATIC,
        between=("max_restarts", "rdzv_backend"),
    ),
    Refusal(lambda _: importlib.util.find_spec("torch") is None, lambda _: NO_TORCH),
)
