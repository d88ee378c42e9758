"""What a worker process runs: the user's script as `__main__`, and a note to the launcher if it fails.

    python child.py <pid of the launcher> bind|"" script|module|program <target> <arguments of the script> ...

Of several failing workers one has the cause, the others have errors that follow from it. So no worker prints its own
traceback: it leaves a note with the time in TORCHELASTIC_ERROR_FILE (in torch elastic's format, plus our keys), and
the launcher prints the earliest one (`failure.py`).

This file is started by its name and imports nothing but the standard library: the script's own folder, not the
current one, decides what `import` finds.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable
from importlib.abc import InspectLoader
from typing import NoReturn

_PATIENCE_S = 30.0  # for one file that the script has left open; who reads it at the other end may be slow


def main() -> None:
    work(*sys.argv[1:])


def work(launcher: str, binding: str, kind: str, target: str, *given: str) -> NoReturn:
    """Run a script, in a process of its own or in a fork of `fork_server.py`."""
    arguments = list(given)
    _end_with(int(launcher))
    if binding:
        _bind_to_own_cores()
    if kind == "program":
        os.execvp(target, [target, *arguments])
    sys.excepthook = _note_exception
    # Whole lines in one write: lines of several processes on one terminal or pipe do not mix, and appear at once. Under
    # PYTHONUNBUFFERED a line and its newline would be two writes.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True, write_through=False)
    prepare = {"script": _script, "module": _module}[kind]
    try:
        code, module = prepare(target, arguments)
        sys.modules["__main__"] = module
        exec(code, module.__dict__)  # noqa: S102 - running the user's program is what this file is for
    except SystemExit as error:
        _note_exit(error)
        _leave(error.code)
    _leave(0)


def _leave(status: object) -> NoReturn:
    """End as the processes of `multiprocessing` do: exit handlers run, files are written, nothing is torn down.

    Tearing the interpreter down while threads of the process group still let go of Python objects ends some runs in
    std::terminate (SIGABRT) after all their work is done.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - joins the script's threads, as at any end
    _end_process(status & 0xFF if isinstance(status, int) else int(status is not None), _PATIENCE_S)


def _beside_the_package(name: str) -> types.ModuleType:
    """A file of `runtime` that needs nothing else of it, by its place: a worker has no package of ours."""
    folder = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    spec = importlib.util.spec_from_file_location(f"_launched_{name}", os.path.join(folder, f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _end_with(launcher: int) -> None:
    """Have Linux end this process when the launcher dies without a word (kill -9): no orphan keeps a GPU."""
    if sys.platform != "linux":
        return
    import ctypes  # late: only here

    set_parent_death_signal = 1  # PR_SET_PDEATHSIG, linux/prctl.h
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)
    if os.getppid() != launcher:  # it died before the call
        os.kill(os.getpid(), signal.SIGTERM)


def _bind_to_own_cores() -> None:
    """Take this process' part of the cores that the launcher may use: neighbours, which share caches."""
    if not hasattr(os, "sched_setaffinity"):  # not on Linux
        return
    cores = sorted(os.sched_getaffinity(0))
    rank, size = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    own = cores[rank * len(cores) // size : (rank + 1) * len(cores) // size]
    os.sched_setaffinity(0, own or [cores[rank % len(cores)]])  # more processes than cores


def _script(target: str, arguments: list[str]) -> tuple[types.CodeType, types.ModuleType]:
    """The code and the `__main__` that `python script.py` would make."""
    path = os.path.abspath(target)
    sys.argv = [target, *arguments]
    _replace_first_path(os.path.dirname(os.path.realpath(target)))
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __cached__=None, __spec__=None, __builtins__=__builtins__)
    with io.open_code(path) as file:
        return compile(file.read(), path, "exec", dont_inherit=True), module


def _module(target: str, arguments: list[str]) -> tuple[types.CodeType, types.ModuleType]:
    """The code and the `__main__` that `python -m package.module` would make."""
    _replace_first_path(os.getcwd())
    spec = importlib.util.find_spec(target)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{target}.__main__")
    loader = spec.loader if spec is not None else None
    code = loader.get_code(spec.name) if spec is not None and isinstance(loader, InspectLoader) else None
    if spec is None or code is None:
        raise SystemExit(f"No module named {target!r} that can be run in {os.getcwd()} or on the import path.")
    sys.argv = [spec.origin or target, *arguments]
    module = importlib.util.module_from_spec(spec)
    module.__name__ = "__main__"
    return code, module


def _replace_first_path(folder: str) -> None:
    """Put `folder` where Python put the folder of this file, which it did unless it runs in safe-path mode."""
    if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
        sys.path[0] = folder


def _note_exception(kind: type[BaseException], error: BaseException, tb: types.TracebackType | None) -> None:
    """The exception hook: a note instead of a print. A Ctrl-C is the user's wish and needs no traceback."""
    if issubclass(kind, KeyboardInterrupt):
        return
    while tb is not None and os.path.dirname(tb.tb_frame.f_code.co_filename) == os.path.dirname(__file__):
        tb = tb.tb_next  # our own frames are no news
    text = "".join(traceback.TracebackException(kind, error, tb).format())
    since = str(getattr(error, "ended_since", ""))  # that of another process (`runtime.watch.hook`)
    if since not in text:
        text += f"[runtime] {since}\n"
    if not _note(text, message=f"{kind.__name__}: {error}", status=1, follows=bool(since)):
        sys.stderr.write(text)


def _note_exit(error: SystemExit) -> None:
    """`sys.exit("message")` prints its message in every process: note it, and leave with the status alone."""
    if error.code is None or error.code == 0:
        return
    status = error.code & 0xFF if isinstance(error.code, int) else 1
    text = "" if isinstance(error.code, int) else f"{error.code}\n"
    if _note(text, message=f"SystemExit: {error.code}", status=status):
        error.code = status


def _note(text: str, *, message: str, status: int, follows: bool = False) -> bool:
    """True if the launcher will find the note, so that nothing has to be printed here."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path:
        return False
    now_ns = time.time_ns()
    extra = {"py_callstack": text, "timestamp": str(now_ns // 10**9)}
    note = {"message": {"message": message, "extraInfo": extra}, "time_ns": now_ns, "status": status, "text": text}
    note["follows"] = follows
    try:
        with open(f"{path}.part", "w", encoding="utf-8", errors="backslashreplace") as file:
            json.dump(note, file)
        os.replace(f"{path}.part", path)  # the launcher never reads half a note
    except OSError:
        return False
    return True


# Before the script decides what an import finds.
_end_process: Callable[[int, float], NoReturn] = _beside_the_package("open_files").end_process

if __name__ == "__main__":
    main()
