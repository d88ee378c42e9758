"""Starts runs in processes that have imported torch already: a verification is six runs, and importing takes longest.

    python zygote.py        requests on standard input, answers on standard output, a line of JSON each

The processes of a run are forks; each becomes the recorder as `python recorder ORDER` would. On several processes they
get what the launcher gives them.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import sys
import time
import traceback

import torch
import torch._dynamo  # the first optimizer imports it: seconds for each run
import torch.distributed
import torch.nn.parallel
import torch.utils.data

import runtime.accelerator
import runtime.data.feeds
import runtime.data.loader
import runtime.strategies  # noqa: F401 - likewise

PATIENCE_S = 5.0  # how long the others live when one has failed


def main() -> None:
    torch.set_num_threads(1)
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        children = [_fork(request, rank) for rank in range(request["processes"])]
        print(json.dumps({"status": _wait(children, request["limit_s"])}), flush=True)


def _fork(request: dict, rank: int) -> int:
    child = os.fork()
    if child:
        return child
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in (1, 2):
        os.dup2(log, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.clear()
    os.environ.update(request["environment"])
    named = request["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[1:1] = [folder for folder in named if folder and folder not in sys.path]
    count = request["processes"]
    if count > 1:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count))
    sys.argv = [request["recorder"], request["order"]]
    sys.path[0] = os.path.dirname(request["recorder"])
    os._exit(_become(request["recorder"]))


def _become(recorder: str) -> int:
    status = 0
    try:
        runpy.run_path(recorder, run_name="__main__")
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - the log shows it
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def _wait(children: list[int], limit_s: float) -> int:
    """The first status that is not 0; one that failed ends the others, as the launcher does."""
    end, worst = time.monotonic() + limit_s, 0
    left = set(children)
    while left:
        for child in list(left):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                left.discard(child)
                if status:
                    worst = worst or os.waitstatus_to_exitcode(status)
                    end = min(end, time.monotonic() + PATIENCE_S)
        if time.monotonic() > end:
            for child in left:
                os.kill(child, signal.SIGKILL)
            end = float("inf")
        time.sleep(0.01)
    return worst


if __name__ == "__main__":
    main()
