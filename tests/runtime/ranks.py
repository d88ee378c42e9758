"""Run a function on N processes joined by gloo, and get what each returned.

A fork server imports torch once, so a run costs a fraction of a second after the first. The function is found again by
file and name in the child, so it must be at module level of a file that can be imported alone.
"""

from __future__ import annotations

import importlib.util
import inspect
import multiprocessing
import os
import pickle
import random
import sys
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from runtime.launch.machine import port_is_free

TIMEOUT_S = 120
#: An optimizer imports torch._dynamo, which takes longer than most of these trainings.
PRELOADED = ["torch", "torch.distributed", "torch.optim", "torch.utils.data", "torch._dynamo"]


def run_ranks(
    function: Any,
    size: int,
    *arguments: Any,
    timeout_s: float = TIMEOUT_S,
    is_fresh: bool = False,
    own: Callable[[int], dict[str, str]] | None = None,
) -> list[Any]:
    """What `function(*arguments)` returns on each of `size` ranks; the first failure is raised with its traceback.

    `is_fresh` ranks are interpreters of their own: for what torch._dynamo, once imported, would change.
    `own` gives the variables that only one rank has.
    """
    context: Any = multiprocessing.get_context("spawn" if is_fresh else "forkserver")
    if not is_fresh:
        context.set_forkserver_preload(PRELOADED)
    place = (inspect.getfile(function), function.__name__)
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
    processes, pipes = [], []
    for rank in range(size):
        receiver, sender = context.Pipe(duplex=False)
        place_of_rank = {"RANK": str(rank), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(size)}
        environ = {**variables, **place_of_rank, **(own(rank) if own is not None else {})}
        process = context.Process(target=_child, args=(place, arguments, environ, sender))  # may have workers
        process.start()
        sender.close()
        processes.append(process)
        pipes.append(receiver)
    try:
        return _collected(pipes, timeout_s)
    finally:
        for process in processes:
            process.join(10)
            if process.is_alive():
                process.kill()


def apart(rank: int) -> dict[str, str]:
    """The variables of a rank that is alone on its machine, as far as PyTorch and NCCL can tell: several share a GPU.

    cuBLAS computes the same in every run only with a workspace of its own.
    """
    nccl = {"NCCL_HOSTID": f"machine-{rank}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
    return {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "CUBLAS_WORKSPACE_CONFIG": ":4096:8", **nccl}


def _collected(pipes: list[Connection], timeout_s: float) -> list[Any]:
    results: dict[int, Any] = {}
    while len(results) < len(pipes):
        missing = [pipe for rank, pipe in enumerate(pipes) if rank not in results]
        ready = wait(missing, timeout_s)
        if not ready:
            raise TimeoutError(f"ranks {sorted(set(range(len(pipes))) - set(results))} gave no answer in {timeout_s} s")
        for pipe in ready:
            rank = pipes.index(pipe)
            try:
                is_fine, value = pickle.loads(pipe.recv_bytes())  # noqa: S301  our own child wrote it
            except EOFError:
                raise AssertionError(f"rank {rank} died without an answer") from None
            if not is_fine:
                raise AssertionError(f"rank {rank} failed:\n{value}")
            results[rank] = value
    return [results[rank] for rank in range(len(pipes))]


def _child(place: tuple[str, str], arguments: tuple[Any, ...], variables: dict[str, str], sender: Connection) -> None:
    os.environ.update(variables)
    import torch

    torch.set_num_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "Guards may run slower on Python 3.13.0", RuntimeWarning)
            answer = (True, _load(*place)(*arguments))
        sender.send_bytes(pickle.dumps(answer))  # not send(), which shares the memory of tensors with a dead process
    except BaseException:  # noqa: BLE001  whatever it is, the test shows it
        sender.send_bytes(pickle.dumps((False, traceback.format_exc())))
        os._exit(1)  # the other ranks must not wait for this one
    finally:
        sender.close()
    import torch.distributed as dist

    if dist.is_initialized():
        dist.destroy_process_group()  # multiprocessing leaves without running exit handlers


def _load(path: str, name: str) -> Any:
    for folder in (str(Path(path).parent), str(Path(__file__).parent), str(Path(__file__).parents[2])):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(f"_ranks_{Path(path).stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


def free_port() -> int:
    """A port on which nothing listens, below those that the system gives to whoever connects: no other run takes it."""
    drawn = random.SystemRandom()  # the tests seed `random`
    while not port_is_free(port := drawn.randrange(20_000, 32_000)):
        pass
    return port
