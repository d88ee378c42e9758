"""What a training step costs through the runtime, next to the raw loop (and to accelerate, where it is installed).

    python bench/step_overhead.py                            one process
    torchrun --nproc_per_node 2 bench/step_overhead.py       two processes: the training thread's time, raw DDP as base

The variants take turns in one process (in a shuffled order that all ranks share), so a busy machine slows all of them;
the ratio is the median over the rounds of a variant's time to the raw one's. Times are CPU time of the training thread.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate

from runtime import Accelerator

STEPS = 256
Chunk = Callable[[], float]  # does its work once and returns the seconds per unit


class Raw:
    """The plain program behind the names of an accelerator."""

    sync_gradients = True

    def prepare(self, model: nn.Module, *others: Any) -> tuple[Any, ...]:
        if dist.is_initialized():
            model = nn.parallel.DistributedDataParallel(model)
        return model, *others

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()


def parts() -> tuple[Any, ...]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    world = dist.get_world_size() if dist.is_initialized() else 1
    data = TensorDataset(torch.randn(8 * STEPS * world, 32), torch.randn(8 * STEPS * world, 32))
    loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=default_collate)
    return model, optimizer, loader, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)


def per_step(loop: Callable[[], int]) -> Chunk:
    def chunk() -> float:
        start = time.thread_time()
        count = loop()
        return (time.thread_time() - start) / count

    return chunk


def plain_loop(engine: Any) -> Chunk:
    model, optimizer, loader, _ = engine.prepare(*parts())

    def loop() -> int:
        for step, (x, y) in enumerate(loader, 1):
            engine.backward(nn.functional.mse_loss(model(x), y))
            optimizer.step()
            optimizer.zero_grad()
            if step == STEPS:
                break
        return step

    return per_step(loop)


def full_raw_loop(engine: Any) -> Chunk:
    model, optimizer, loader, scheduler = engine.prepare(*parts())

    def loop() -> int:
        for step, (x, y) in enumerate(loader, 1):
            nn.functional.mse_loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            if step == STEPS:
                break
        return step

    return per_step(loop)


def full_loop(engine: Any) -> Chunk:
    if isinstance(engine, Raw):
        return full_raw_loop(engine)
    model, optimizer, loader, scheduler = engine.prepare(*parts())

    def loop() -> int:
        for step, (x, y) in enumerate(loader, 1):
            with engine.accumulate(model):
                engine.backward(nn.functional.mse_loss(model(x), y))
                if engine.sync_gradients:
                    engine.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if step == STEPS:
                break
        return step

    return per_step(loop)


def epoch_start(engine: Any) -> Chunk:
    """The fixed cost of an epoch: one batch, then out."""
    _, _, loader, _ = engine.prepare(*parts())

    def loop() -> int:
        for _ in range(50):
            for _ in loader:
                break
        return 50

    return per_step(loop)


def measured(variants: dict[str, Chunk], rounds: int) -> dict[str, list[float]]:
    order, shuffled = list(variants), random.Random(0)  # noqa: S311  the same order on all ranks
    times: dict[str, list[float]] = {name: [] for name in order}
    for number in range(-2, rounds):
        shuffled.shuffle(order)
        for name in order:
            seconds = variants[name]()
            if number >= 0:
                times[name].append(seconds)
    return times


def show(title: str, times: dict[str, list[float]]) -> None:
    if dist.is_initialized() and dist.get_rank():
        return
    print(f"\n{title:44s} {'us':>9s} {'ratio to raw':>13s}")
    for name, own in times.items():
        ratio = statistics.median(a / b for a, b in zip(own, times["raw"], strict=True))
        print(f"{name:44s} {statistics.median(own) * 1e6:9.1f} {ratio:13.3f}")


def engines() -> dict[str, Any]:
    found = {"raw": Raw(), "runtime": Accelerator(cpu=True)}  # the second joins the processes for all
    try:
        from accelerate import Accelerator as Other
    except ImportError:
        return found
    os.environ["ACCELERATE_USE_CPU"] = "1"
    return {**found, "accelerate": Other(cpu=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    found = engines()
    tasks = {
        "data, forward, backward, step, zero_grad": plain_loop,
        "the same, accumulate, clip, scheduler": full_loop,
        "start of an epoch": epoch_start,
    }
    for title, make in tasks.items():
        show(title, measured({name: make(engine) for name, engine in found.items()}, rounds))


if __name__ == "__main__":
    main()
