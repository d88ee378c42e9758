"""When workers are forked from a process that has imported torch, which takes a second for each that imports it itself.

Nothing in a script may depend on it. Where it could, workers are interpreters of their own; the tables below say where,
and `runtime launch --debug` which of them it was.
"""

from __future__ import annotations

import os
import pickle
import platform
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

from runtime.hardware import may_have_accelerator
from runtime.launch import early
from runtime.launch.share import Share
from runtime.launch.spec import LaunchError, LaunchSpec

_SERVER = Path(__file__).with_name("fork_server.py")
_SWITCH = "RUNTIME_LAUNCH_FORK"


def take_over(spec: LaunchSpec, share: Share, variables: Mapping[str, str]) -> None:
    """Turn this process into the launcher that forks its workers; returns where that must not be done."""
    reason = why_not(spec, variables)
    if reason:
        _tell(spec, reason)
        return
    asked = {
        "call": pickle.dumps((spec, share)),
        "path": sys.path,
        "folder": _first_folder(spec),
    }
    with tempfile.TemporaryFile() as file:
        pickle.dump(asked, file)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        os.set_inheritable(file.fileno(), True)
        sys.stdout.flush()
        sys.stderr.flush()
        # The script's name stands in the list of processes for its workers, too.
        shown = [*(["-m"] if spec.as_module else []), spec.target, *spec.arguments]
        os.execve(sys.executable, [sys.executable, str(_SERVER), str(file.fileno()), *shown], dict(variables))


def go_on(call: bytes, line: Connection | None, reason: str) -> NoReturn:
    """The launch, after `fork_server.py` has imported torch; without a line to a server, workers are not forked."""
    spec, share = pickle.loads(call)  # noqa: S301  written by `take_over`
    from runtime.launch import agent
    from runtime.launch.fork_client import ForkServer

    if line is None:
        _tell(spec, reason)
    try:
        status = agent.run(spec, share, server=ForkServer(line) if line else None)
    except LaunchError as error:
        sys.stderr.write(f"runtime launch: {error}\n")
        status = 2
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


def why_not(spec: LaunchSpec, variables: Mapping[str, str]) -> str:
    """The reason why the workers of this launch must not be forked; nothing where they may."""
    return next((reason for holds, reason in _REASONS if holds(spec, variables)), "") or early.set_before_torch(
        _main_file(spec), _first_folder(spec)
    )


def _tell(spec: LaunchSpec, reason: str) -> None:
    if spec.debug:
        sys.stderr.write(f"runtime launch: every process imports torch itself: {reason}\n")


def _first_folder(spec: LaunchSpec) -> str:
    """Where the script's `import` looks first."""
    return os.getcwd() if spec.as_module else os.path.dirname(os.path.realpath(spec.target))


def _main_file(spec: LaunchSpec) -> Path | None:
    if not spec.as_module:
        return Path(os.path.realpath(spec.target))
    place = Path(_first_folder(spec), *spec.target.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__main__.py") if path.is_file()), None)


_Condition = Callable[[LaunchSpec, Mapping[str, str]], bool]
_REASONS: tuple[tuple[_Condition, str], ...] = (
    (lambda _, variables: variables.get(_SWITCH) == "0", f"{_SWITCH}=0"),
    (lambda spec, _: spec.no_python, "--no_python: the script is a program of its own"),
    (
        lambda *_: platform.system() != "Linux" or not hasattr(os, "pidfd_open"),
        "processes are forked on Linux only",
    ),
    (
        lambda spec, _: not spec.cpu and may_have_accelerator(),
        "the drivers of GPUs do not survive a fork (--cpu keeps off them)",
    ),
    (
        lambda *_: bool(entry_points(group="torch.backends")),
        "a package loads a device with torch (entry point torch.backends), which may not survive a fork",
    ),
    (
        lambda _, variables: variables.get("PYTHONHASHSEED") == "random",
        "PYTHONHASHSEED=random: each process is to hash in its own way",
    ),
    (
        lambda _, variables: "COVERAGE_PROCESS_START" in variables or "COVERAGE_PROCESS_CONFIG" in variables,
        "coverage measures each process from its start",
    ),
    (lambda spec, _: _main_file(spec) is None, "the module is not a file below the current folder"),
)
