"""Runs converted programs as they are, on request, and writes down the losses that they went back from.

Each line of the standard input is a request: JSON with the folder to run in, the script and its arguments. The program
runs in a fork of this process, which has imported torch (and torch_xla) already; its output and errors, its status and
its losses are in the folder when a line of the standard output says so.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import sys
import traceback
from pathlib import Path

import torch._dynamo

import runtime.accelerator  # noqa: F401 (it is imported by the first Accelerator, else)
from runtime import Accelerator, set_seed

if "PJRT_DEVICE" in os.environ:
    import torch_xla  # noqa: F401 (its client is made by who asks for a device first: in the fork)

ENOUGH = 200  # losses of a program that goes on for long
LIMIT_S = 240


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        folder = Path(request["folder"])
        child = os.fork()
        if child == 0:
            become(folder, request["script"], request["arguments"])
        _, status = os.waitpid(child, 0)
        (folder / "status").write_text(str(os.waitstatus_to_exitcode(status)))
        print("done", flush=True)


def become(folder: Path, script: str, arguments: list[str]) -> None:
    """Turn this process into the program."""
    signal.alarm(LIMIT_S)
    for number, name in ((0, os.devnull), (1, folder / "output"), (2, folder / "errors")):
        os.dup2(os.open(name, os.O_CREAT | os.O_RDWR), number)
    os.chdir(folder)
    sys.argv = [script, *arguments]
    sys.path[0] = str(Path(script).parent)
    losses = recorded()
    set_seed(0)  # some programs do not
    status = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 (whatever it is, the test shows it)
        traceback.print_exc()
        status = 1
    (folder / "losses.json").write_text(json.dumps([loss.float().sum().item() for loss in losses]))
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def recorded() -> list[torch.Tensor]:
    """The losses from now on; they are read at the end, since reading one cuts the step on XLA."""
    losses: list[torch.Tensor] = []
    backward = Accelerator.backward

    def noted(self, loss, **kwargs):
        if len(losses) < ENOUGH:
            losses.append(loss.detach().clone())
        backward(self, loss, **kwargs)

    Accelerator.backward = noted
    return losses


main()
