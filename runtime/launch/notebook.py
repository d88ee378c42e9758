"""`notebook_launcher` and `debug_launcher`: a function of a notebook or a REPL, on several processes.

The processes are new ones, as those of `runtime launch` are, and not forks of the notebook: a kernel has threads, may
have opened a GPU, and has often computed something already, and none of these survives a fork. So a cell may be run
again and again, and what it ran before does not matter.
"""

from __future__ import annotations

import dataclasses
import os
import random
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from runtime.config import MixedPrecision, precision_of
from runtime.errors import ConfigurationError, ProcessFailed, UnsupportedArgument
from runtime.launch.env import child_environment, environment
from runtime.launch.refusals import check
from runtime.launch.share import Share, divide
from runtime.launch.spec import DEFAULT_PORT, LaunchError, LaunchSpec, Machines
from runtime.variables import patch_environment

_CELL = str(Path(__file__).with_name("cell.py"))
_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")  # those that torch elastic takes


def notebook_launcher(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    num_processes: int | None = None,
    mixed_precision: str = "no",
    use_port: str | int = DEFAULT_PORT,
    master_addr: str = "127.0.0.1",
    node_rank: int = 0,
    num_nodes: int = 1,
    rdzv_backend: str = "static",
    rdzv_endpoint: str = "",
    rdzv_conf: Mapping[str, Any] | None = None,
    rdzv_id: str = "none",
    max_restarts: int = 0,
    monitor_interval: float = 0.1,
    log_line_prefix_template: str | None = None,
) -> Any:
    """Run `function(*args)` on several processes, and give back what it returned on rank 0.

    The function, what it uses of the notebook's variables, and its result are pickled (cloudpickle). One process runs
    in the notebook itself.

    Args:
        function: creates its `Accelerator` itself.
        num_processes: on this machine; None is one per GPU, or a single one where there is none.
        mixed_precision: "no" leaves it to the function.
        use_port: where several machines meet; one machine takes a free port where this is left at 29500.
        node_rank: which of `num_nodes` machines this is; `master_addr` is the address of machine 0.
        max_restarts: start all processes again after a failure, so often.
        monitor_interval: seconds between two looks at the processes.

    Raises:
        ConfigurationError: nothing was started; the message names the value and the way out.
        ProcessFailed: a process failed; the message ends with its traceback.
        KeyboardInterrupt: the cell was interrupted; the processes were ended.
    """
    _refuse(
        rdzv_backend=rdzv_backend not in {"static", ""},
        rdzv_endpoint=bool(rdzv_endpoint),
        rdzv_conf=bool(rdzv_conf),
        rdzv_id=rdzv_id != "none",
        log_line_prefix_template=log_line_prefix_template is not None,
    )
    _check_call(function, args)
    precision = precision_of(mixed_precision)
    machines, port = _whole("num_nodes", num_nodes), _whole("use_port", use_port)
    if machines < 1:
        raise ConfigurationError(f"num_nodes={machines}: at least 1 is needed; leave it out for this machine alone")
    is_alone = machines == 1
    spec = LaunchSpec(
        target=_CELL,
        num_processes=None if num_processes is None else _whole("num_processes", num_processes) * machines,
        machines=Machines(machines, machines),
        machine_rank=_whole("node_rank", node_rank),
        main_process_ip=None if is_alone else master_addr,
        main_process_port=None if is_alone and port == DEFAULT_PORT else port,
        mixed_precision=None if precision is MixedPrecision.NO else precision,
        max_restarts=_whole("max_restarts", max_restarts),
        monitor_interval=monitor_interval,
    )
    share = _share(spec)
    if share.processes == 1 and not spec.max_restarts:
        settings = {} if spec.mixed_precision is None else {"ACCELERATE_MIXED_PRECISION": spec.mixed_precision.value}
        with patch_environment(**settings):
            return function(*args)
    # Cells of one machine are one program: the next draws from where this one left off, as on one process.
    return _start(spec, share, function, args, goes_on=is_alone)


def debug_launcher(function: Callable[..., Any], args: Sequence[Any] = (), num_processes: int = 2) -> Any:
    """Run `function(*args)` on several processes on the CPU, and give back what it returned on rank 0.

    Raises:
        ConfigurationError: nothing was started; the message names the value and the way out.
        ProcessFailed: a process failed; the message ends with its traceback.
    """
    _check_call(function, args)
    spec = LaunchSpec(target=_CELL, num_processes=_whole("num_processes", num_processes), cpu=True)
    return _start(spec, _share(spec), function, args)


def _start(
    spec: LaunchSpec, share: Share, function: Callable[..., Any], args: Sequence[Any], goes_on: bool = False
) -> Any:
    from runtime.launch import agent, parcel  # late: the first imports torch

    told: list[str] = []
    with tempfile.TemporaryDirectory(prefix="runtime-notebook-", ignore_cleanup_errors=True) as folder:
        call, result = os.path.join(folder, "call"), os.path.join(folder, "result")
        parcel.pack(function, args, call)
        _say(spec, share)
        started = dataclasses.replace(spec, arguments=(call, result))
        with environment(child_environment(spec, share, os.environ)), _signals_kept(), _random_kept():
            try:
                status = agent.run(started, share, told.append)
            except LaunchError as error:
                raise ConfigurationError(_in_words_of_a_notebook(str(error))) from error
        if told:
            raise ProcessFailed("".join(told).removesuffix("\n"), status)
        if status:  # a signal, which torch elastic has taken for us
            raise KeyboardInterrupt if status == 128 + signal.SIGINT else SystemExit(status)
        back = parcel.unpack(result)
    if back.missing:
        why = f"what the function returned cannot be sent, and None is given back: {back.missing}"
        warnings.warn(why, stacklevel=3)
    if goes_on:
        parcel.go_on(back.random)
    return back.value


def _share(spec: LaunchSpec) -> Share:
    try:
        check(spec)
        share = divide(spec, os.environ)
    except LaunchError as error:
        raise ConfigurationError(_in_words_of_a_notebook(str(error))) from error
    taken = _taken() if share.processes > 1 and not spec.cpu else None
    if taken is not None:
        raise ConfigurationError(
            f"{taken.upper()} is already in use in this notebook, and what it holds there is not free for the "
            "processes that are to be started. Restart the kernel, and let no cell touch such a device before this "
            "one: create the Accelerator, the model and the tensors inside of the function. To ask how many there are "
            "(torch.cuda.device_count()) does no harm."
        )
    return share


def _taken() -> str | None:
    """The kind of device that the notebook has opened, which nothing but PyTorch could have done."""
    if "torch" not in sys.modules:
        return None
    from runtime.devices import in_use  # late: imports torch

    return in_use()


def _say(spec: LaunchSpec, share: Share) -> None:
    here = f"{share.processes_here} of {share.processes}" if spec.machines.are_several else str(share.processes)
    why = " (no GPU found)" if share.notice else ""
    print(f"Starting {here} processes{' on the CPU' if spec.cpu or share.notice else ''}{why}.", flush=True)  # noqa: T201


def _refuse(**given: bool) -> None:
    for name, is_given in given.items():
        if is_given:
            raise UnsupportedArgument(f"notebook_launcher({name}=...)", _WAYS_OUT[name])


def _check_call(function: object, args: object) -> None:
    if not callable(function):
        raise ConfigurationError(f"{function!r} is no function. Pass the function itself: notebook_launcher(train).")
    if not isinstance(args, Sequence) or isinstance(args, str):
        raise ConfigurationError(
            f"args={args!r} are not the arguments of the function. Pass a tuple: args=({args!r},)."
        )


def _whole(name: str, value: str | int) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise ConfigurationError(f"{name}={value!r} is not a number. Give a whole one, or leave it out.") from None
    if isinstance(value, float) and number != value:
        raise ConfigurationError(f"{name}={value!r} is not a whole number. Give one, or leave it out.")
    return number


def _in_words_of_a_notebook(message: str) -> str:
    for option, argument in _ARGUMENTS.items():
        message = message.replace(option, argument)
    return message


@contextmanager
def _random_kept() -> Iterator[None]:
    """Torch elastic draws from Python's random numbers; the notebook's stay where they were."""
    state = random.getstate()
    try:
        yield
    finally:
        random.setstate(state)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Torch elastic takes signals for good; the notebook needs its own again."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for name in _SIGNALS if (number := getattr(signal, name, None))}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


_WAYS_OUT = {
    "rdzv_backend": "One machine needs none, and several machines meet at master_addr: leave it out.",
    "rdzv_endpoint": "Name the machine with node_rank=0 by master_addr and use_port.",
    "rdzv_conf": "Leave it out.",
    "rdzv_id": "Leave it out: every start has its own.",
    "log_line_prefix_template": "Lines are shown as they are printed: leave it out.",
}

# What the messages of the command line say, and how it is called here.
_ARGUMENTS = {
    "--num_processes ": "num_processes=",
    "--num_machines ": "num_nodes=",
    "--machine_rank ": "node_rank=",
    "--main_process_port ": "use_port=",
    "--main_process_ip": "master_addr",
    "--max_restarts ": "max_restarts=",
    "--mixed_precision ": "mixed_precision=",
    "--cpu": "debug_launcher",
}
