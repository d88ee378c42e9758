"""Runs scripts on request, in processes that have imported torch already: started once by `runtime launch`.

    runtime launch --cpu -n 2 stage.py FOLDER
    FIXTURES_ON=gpu runtime launch --num_machines 2 --machine_rank 0 ... stage.py FOLDER     and rank 1: on a GPU

Every rank reads FOLDER/request-<n>.json in turn, forks for each, and leaves FOLDER/result-<n>-<rank>.json. A script has
a folder of its own on each rank, so that a file written by the wrong process is seen, unless the request says that they
share one; its output goes to files. On one process only rank 0 runs it, without any trace of the launch.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import hashlib
import json
import os
import pickle
import runpy
import signal
import sys
import time
import traceback
from pathlib import Path

import torch
import torch._dynamo  # the first step of an optimizer imports it: more than a second for each script
import torch.distributed
import torch.nn.parallel
import torch.utils.data

import runtime.accelerator  # noqa: F401 - likewise

sys.path.insert(0, str(Path(__file__).resolve().parent))
from cases import python_of

LIMIT_S = int(os.environ.get("STAGE_LIMIT_S", "60"))  # a script that hangs is killed
PLACEMENT = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
#: What torchrun says to the only process that it starts.
ALONE = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
ON_GPU = os.environ.get("FIXTURES_ON") == "gpu"
CHECKPOINTS = (".pt", ".pth", ".ckpt", ".bin")


def main(folder: Path) -> int:
    rank = int(os.environ["RANK"])
    gc.freeze()  # the collector must not touch, and so copy, every page in every fork
    number = 0
    while True:
        request = _next(folder, number)
        if request is None:
            return 0
        if rank < request["processes"]:
            work = folder / f"run-{number}-{0 if request.get('shared') else rank}" / "work"
            _write(folder / f"result-{number}-{rank}.json", _perform(folder / f"run-{number}-{rank}", work, request))
        number += 1


def _next(folder: Path, number: int) -> dict | None:
    path = folder / f"request-{number}.json"
    while not path.exists():
        time.sleep(0.005)
    return json.loads(path.read_text())


def _write(path: Path, value: object) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(value))
    part.replace(path)


def _perform(folder: Path, work: Path, request: dict) -> dict:
    """Run the script in a fork; its exit status, what it printed, and what it wrote."""
    folder.mkdir(exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child == 0:
        _become(folder, work, request)
    _, status = os.waitpid(child, 0)
    return {
        "status": os.waitstatus_to_exitcode(status),
        "output": (folder / "output").read_text(encoding="utf-8"),
        "errors": (folder / "errors").read_text(encoding="utf-8"),
        "files": {str(path.relative_to(work)): _digest(path) for path in sorted(work.rglob("*")) if path.is_file()},
    }


def _become(folder: Path, work: Path, request: dict) -> None:
    """Turn this process into the script."""
    for number, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(folder / name, os.O_CREAT | os.O_WRONLY), number)
    faulthandler.register(signal.SIGALRM, file=2, chain=True)  # one that is killed says where it hung
    signal.alarm(LIMIT_S)
    os.environ.pop("TORCHELASTIC_ERROR_FILE", None)
    os.environ.pop("TORCHELASTIC_USE_AGENT_STORE", None)  # each run meets at a port of its own
    if request["launched"]:
        os.environ |= ALONE | {"MASTER_PORT": str(request["port"])}
        _keep_groups()
    elif request["processes"] == 1:
        for name in PLACEMENT:
            os.environ.pop(name, None)
    else:
        os.environ["MASTER_PORT"] = str(request["port"])
    for name, value in request.get("variables", {}).items():
        os.environ.pop(name, None)
        os.environ |= {name: value} if value is not None else {}
    os.chdir(request.get("there") or work)
    sys.argv = [request["script"], *request["arguments"]]
    sys.path[0] = str(Path(request["script"]).parent)
    if ON_GPU:  # what can be compared to the last digit
        torch.use_deterministic_algorithms(True, warn_only=True)
        torch.backends.cudnn.allow_tf32 = False
    if request.get("gpu") is not None:
        _pretend(request["gpu"])
    status = 0
    try:
        runpy.run_path(_python(Path(request["script"]), folder), run_name="__main__")
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - whatever it is, the test shows it
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()  # as the interpreter's end does, which takes seconds with torch in memory
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _keep_groups() -> None:
    """Let the groups that a script destroys live on until its process ends.

    DistributedDataParallel holds its group longer than `destroy_process_group()`. Where it goes with the last frame of
    a function, gloo waits for a thread that waits for the interpreter, which waits for gloo: in one run of forty.
    """
    destroy, kept = torch.distributed.destroy_process_group, []

    def destroy_process_group(*given: object, **named: object) -> None:
        kept.append(torch.distributed.group.WORLD)
        destroy(*given, **named)

    torch.distributed.destroy_process_group = destroy_process_group


def _pretend(gpu: int) -> None:
    """Run on the CPU as on a GPU of that number."""
    sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "migrate"))
    import pretended

    pretended.Gpu.number = gpu
    pretended.pretend()
    pretended.Places().__enter__()  # to the end of the process


def _python(script: Path, folder: Path) -> str:
    """The path of what is run: of a notebook, its cells as a script."""
    if script.suffix != ".ipynb":
        return str(script)
    exported = folder / "notebook.py"
    exported.write_bytes(python_of(script))
    return str(exported)


def _digest(path: Path) -> str:
    """The same for the same content; checkpoints by the tensors in them, for files of one content may differ."""
    if path.suffix not in CHECKPOINTS:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    content = torch.load(path, map_location="cpu", weights_only=False)
    return hashlib.sha256(pickle.dumps(_plain(content))).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return ("tensor", str(value.dtype), value.tolist())
    if isinstance(value, dict):
        return [(repr(key), _plain(inner)) for key, inner in value.items()]
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return repr(value)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
