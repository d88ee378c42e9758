"""Peak memory of a training with a model of 52 million parameters and AdamW, next to the raw loop.

    python bench/memory.py                 one process and two (gloo), raw PyTorch as the base; and sharded (FSDP2)
    python bench/memory.py --rounds 5

Every measurement is a start of its own, since a process's peak never goes down; variants take turns in a shuffled
order. What is shown is the peak of the resident memory of rank 0 without what was there before the model was made
(interpreter and libraries), in MB, and its ratio to the raw loop's of the same round; medians over the rounds.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import socket
import statistics
import subprocess
import sys
from functools import partial
from typing import Any

from turns import in_turns, ratio

WIDTH, LAYERS, BATCH, STEPS = 2048, 12, 16, 3
VARIANTS = ("raw", "runtime", "runtime, FSDP2", "accelerate", "fabric")


def resident(field: str) -> float:
    """MB of this process's memory: `VmRSS` now, `VmHWM` at most."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def raw(model: Any, optimizer: Any) -> tuple[Any, Any, Any]:
    import torch
    import torch.distributed as dist

    if int(os.environ["WORLD_SIZE"]) > 1:
        dist.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
    return model, optimizer, lambda loss: loss.backward()


def runtime(model: Any, optimizer: Any, **options: Any) -> tuple[Any, Any, Any]:
    from runtime import Accelerator

    accelerator = Accelerator(cpu=True, **options)
    return *accelerator.prepare(model, optimizer), accelerator.backward


def sharded(model: Any, optimizer: Any) -> tuple[Any, Any, Any]:
    from runtime import FullyShardedDataParallelPlugin

    names = ["Linear"]
    plugin = FullyShardedDataParallelPlugin(
        auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=names
    )
    return runtime(model, optimizer, fsdp_plugin=plugin)


def accelerate(model: Any, optimizer: Any) -> tuple[Any, Any, Any]:
    os.environ["ACCELERATE_USE_CPU"] = "1"
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    return *accelerator.prepare(model, optimizer), accelerator.backward


def fabric(model: Any, optimizer: Any) -> tuple[Any, Any, Any]:
    from lightning.fabric import Fabric

    world = int(os.environ["WORLD_SIZE"])
    fabric = Fabric(accelerator="cpu", devices=world, strategy="ddp" if world > 1 else "auto")
    fabric.launch()
    return *fabric.setup(model, optimizer), fabric.backward


ENGINES = dict(zip(VARIANTS, (raw, runtime, sharded, accelerate, fabric), strict=True))
MODULES = {"raw": "torch", "runtime": "runtime.accelerator", "runtime, FSDP2": "runtime.accelerator"}


def train(name: str) -> None:
    """One process of one measurement: prints what the training took."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    importlib.import_module(MODULES.get(name, name if name == "accelerate" else "lightning.fabric"))
    importlib.import_module("torch._dynamo")  # the first optimizer imports it
    importlib.import_module("torch.distributed.fsdp")
    before = resident("VmRSS")
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    model, optimizer, backward = ENGINES[name](model, optimizer)
    for _ in range(STEPS):
        backward(model(torch.randn(BATCH, WIDTH)).square().mean())
        optimizer.step()
        optimizer.zero_grad()
    if os.environ["RANK"] == "0":
        print(f"PEAK {resident('VmHWM') - before}")


def measured(name: str, world: int) -> float:
    """The peak of rank 0 in one start of `world` processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world), "OMP_NUM_THREADS": "1"}
    shared |= {"LOCAL_WORLD_SIZE": str(world), "PYTHONWARNINGS": "ignore"}
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--train", name],
            env={**os.environ, **shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "NODE_RANK": "0"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    outputs = [process.communicate(timeout=600)[0] for process in started]
    return float(next(line for line in outputs[0].splitlines() if line.startswith("PEAK")).split()[1])


def installed(world: int) -> list[str]:
    packages = {"accelerate": "accelerate", "fabric": "lightning"}
    found = [name for name in VARIANTS if name not in packages or importlib.util.find_spec(packages[name])]
    return [name for name in found if world > 1 or "FSDP2" not in name]  # one process has nothing to share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--train", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.train:
        train(arguments.train)
        return
    for world in (1, 2):
        runs = {name: partial(measured, name, world) for name in installed(world)}
        peaks = in_turns(runs, arguments.rounds, warm_up=0)
        print(f"\n{f'{world} process' + 'es' * (world > 1):24s} {'MB':>9s} {'ratio to raw':>13s}")
        for name, own in peaks.items():
            print(f"{name:24s} {statistics.median(own):9.0f} {ratio(own, peaks['raw']):13.3f}")


if __name__ == "__main__":
    main()
