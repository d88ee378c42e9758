"""The launcher of a CPU-only launch, in a fresh interpreter: imports torch once, and forks every worker from there.

    python fork_server.py <fd of what was asked for> <script> <arguments of the script> ...

`forked.py` turns the launcher into this, with the environment that the workers are to have: an interpreter reads
PYTHONHASHSEED, and torch's libraries read OMP_NUM_THREADS, when they start. After the import the process divides: the
child waits here, with nothing but torch in it and a single thread, and forks a worker whenever it is asked to; the
parent goes on as torch elastic's agent. (A fork of the agent itself would take its sockets and locks into the worker.)

A worker is what `child.py` would be in an interpreter of its own that has imported torch. This file is started by its
name and imports nothing but the standard library and torch.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pickle
import signal
import sys
import types
import warnings
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn

_FOLDER = os.path.dirname(os.path.realpath(__file__))
_ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)  # a terminal sends them to the whole group
_OF_PYTHON = set(sys.builtin_module_names)


def main() -> None:
    with open(int(sys.argv[1]), "rb") as file:
        asked = pickle.load(file)  # noqa: S301  written by the process that this one was
    _close_inherited()
    own = sys.path[:]
    sys.path[:] = [folder for folder in own if os.path.realpath(folder) != _FOLDER]
    reason = _imported(asked["folder"])
    line = None
    if not reason:
        line, there = Pipe()
        if _fork() == 0:
            line.close()
            request = _serve(there)
            sys.path[:] = own  # this is a worker now, at the place where child.py begins
            _child().work(request["launcher"], *request["arguments"])
        there.close()
    sys.path[:] = asked["path"]
    from runtime.launch.forked import go_on

    go_on(asked["call"], line, reason)


def _close_inherited() -> None:
    """What is open besides the three streams, as subprocess does for those whom it starts.

    Only what is there: a limit of 2**30, which containers have, takes older kernels minutes to go through.
    """
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the listing's own is closed by now
            if int(name) > 2:
                os.close(int(name))


def _imported(folder: str) -> str:
    """Import torch; the reason why a fork of this process would not be what a fresh interpreter is, or nothing."""
    import numpy as np  # noqa: F401  its BLAS starts threads, and stops and starts them again around a fork

    threads = _threads()
    import torch.distributed  # noqa: F401

    if _threads() != threads:
        return "importing torch has started threads, which a fork does not have"
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return "a debugger or profiler follows this process"
    shadowed = _names(folder) & {name.partition(".")[0] for name in sys.modules} - _OF_PYTHON
    if shadowed:
        return f"{folder} has modules named as those that torch imports: {', '.join(sorted(shadowed))}"
    return ""


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _names(folder: str) -> set[str]:
    """The top-level names that could be imported from a folder."""
    names = set()
    with os.scandir(folder or ".") as entries:
        for entry in entries:
            stem, dot, kind = entry.name.partition(".")
            is_package = not dot and entry.is_dir() and os.path.exists(os.path.join(entry.path, "__init__.py"))
            if is_package or kind.endswith(("py", "pyc", "so")):
                names.add(stem)
    return names


def _serve(line: Connection) -> dict[str, Any]:
    """Fork workers until the agent is gone, which its end of the line tells; returns in a worker only."""
    before = {number: _as_in_new_process(number, signal.signal(number, signal.SIG_IGN)) for number in _ENDINGS}
    own = os.getpid()
    workers: dict[int, int] = {}  # a descriptor that becomes readable when the process ends -> its number
    while True:
        for ready in wait([line, *workers]):
            if ready is line:
                try:
                    request = {**line.recv(), "launcher": str(own)}
                except (EOFError, OSError):  # the second where it had not read all that it was told
                    _end(workers)
                number = _forked(request)
                if number == 0:
                    line.close()
                    _become_worker(request, before, list(workers))
                    return request
                if number is None:
                    _tell(line, "refused")
                    continue
                workers[os.pidfd_open(number)] = number
                _tell(line, "started", number)
            else:
                assert isinstance(ready, int)
                number = workers.pop(ready)
                os.close(ready)
                _tell(line, "ended", number, os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]))


def _tell(line: Connection, what: str, number: int = 0, status: int = 0) -> None:
    """Tell the agent of a worker; if it is gone, the line says so next."""
    with contextlib.suppress(OSError):
        line.send((what, number, status))


def _as_in_new_process(number: signal.Signals, handler: Any) -> Any:
    """The handler of a signal as a new process has it: the default where this process ignores the signal.

    A launcher under `nohup` does, and its workers do not: torch elastic has replaced the handler before it starts them.
    """
    if handler is not signal.SIG_IGN:
        return handler
    return signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL


def _forked(request: dict[str, Any]) -> int | None:
    """What `os.fork` gives; None where this process cannot, or must not any more."""
    if request["environment"].get("TORCHELASTIC_RESTART_COUNT", "0") != "0":
        import torch._dynamo  # noqa: F401  an optimizer loads it, which takes a second: once for all further starts
    try:
        return _fork() if _threads() == 1 else None
    except OSError:  # no memory, too many processes: whoever asked tries in its own way, and tells
        return None


def _fork() -> int:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # Python 3.12 warns of threads, which `_imported` has looked at
        return os.fork()


def _end(workers: dict[int, int]) -> NoReturn:
    """The agent is gone, and what it started goes, too (they also have the death of this process as a signal)."""
    for number in workers.values():
        os.kill(number, signal.SIGTERM)
    os._exit(0)


def _become_worker(request: dict[str, Any], handlers: dict[signal.Signals, Any], descriptors: list[int]) -> None:
    """Let nothing of the server be left, but what it has imported."""
    os.setsid()  # as torch elastic starts its workers: signals reach what they start, too
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for descriptor in descriptors:
        os.close(descriptor)
    for stream, path in ((1, request["stdout"]), (2, request["stderr"])):
        if path:
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), stream)
    os.environ.clear()
    os.environ.update(request["environment"])
    # New processes draw other numbers each, where the script sets no seed. (`random` sees to it itself.)
    sys.modules["torch"].default_generator.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def _child() -> types.ModuleType:
    """`child.py`, by its place: a worker has no package of ours among its modules."""
    spec = importlib.util.spec_from_file_location("_launched", os.path.join(_FOLDER, "child.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main()
