"""What a training step costs through the runtime, next to the raw loop (and to accelerate and Lightning Fabric, where
they are installed).

    python bench/step_overhead.py                            one process
    torchrun --nproc_per_node 2 bench/step_overhead.py       two processes: the training thread's time, raw DDP as base
    python bench/step_overhead.py --gpu                      one process on a GPU: until the GPU is done

The variants take turns in one process (in a shuffled order that all ranks share), so a busy machine slows all of them;
the ratio is the median over the rounds of a variant's time to the raw one's. Times are CPU time of the training thread,
and on a GPU those of the clock.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate
from turns import in_turns, ratio

from runtime import Accelerator

STEPS = 16  # of a chunk: short, so that what slows the machine for a moment meets all variants
BATCHES = 1024  # of an epoch, which goes on from chunk to chunk
ON_GPU = "--gpu" in sys.argv
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
Chunk = Callable[[], float]  # does its work once and returns the seconds per unit


class Raw:
    """The plain program behind the names of an accelerator."""

    sync_gradients = True

    def __init__(self, precision: str = "no") -> None:
        self.forward: Any = low if precision == "bf16" else call

    def prepare(self, model: nn.Module, optimizer: Any, loader: Any, scheduler: Any) -> tuple[Any, ...]:
        model.to(DEVICE)
        if dist.is_initialized():
            model = nn.parallel.DistributedDataParallel(model)
        return model, optimizer, Moved(loader) if ON_GPU else loader, scheduler

    def backward(self, loss: torch.Tensor) -> None:
        loss.backward()


class Moved:
    """A loader whose batches the program moves by hand."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        return ((x.to(DEVICE), y.to(DEVICE)) for x, y in self._loader)


class Fabric:
    """Lightning Fabric behind the names of an accelerator, used as its documentation shows."""

    sync_gradients = True
    forward = staticmethod(lambda model, x: model(x))

    def __init__(self, precision: str = "no") -> None:
        from lightning.fabric import Fabric as Engine
        from lightning.fabric.plugins.environments import LightningEnvironment, TorchElasticEnvironment

        size = dist.get_world_size() if dist.is_initialized() else 1
        self.engine = Engine(
            accelerator=DEVICE.type,
            devices=size,
            strategy="ddp" if size > 1 else "auto",
            precision="bf16-mixed" if precision == "bf16" else "32-true",
            plugins=TorchElasticEnvironment() if size > 1 else LightningEnvironment(),
        )
        self.engine.launch()
        self.backward = self.engine.backward

    def prepare(self, model: nn.Module, optimizer: Any, loader: Any, scheduler: Any) -> tuple[Any, ...]:
        self.model, self.optimizer = self.engine.setup(model, optimizer)
        return self.model, self.optimizer, self.engine.setup_dataloaders(loader), scheduler

    def accumulate(self, model: nn.Module) -> Any:
        return self.engine.no_backward_sync(model, enabled=False)

    def clip_grad_norm_(self, parameters: Any, max_norm: float) -> None:
        self.engine.clip_gradients(self.model, self.optimizer, max_norm=max_norm)


def call(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x)


def low(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
        output = model(x)
    return output.float()


def parts() -> tuple[Any, ...]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    world = dist.get_world_size() if dist.is_initialized() else 1
    data = TensorDataset(torch.randn(8 * BATCHES * world, 32), torch.randn(8 * BATCHES * world, 32))
    loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=default_collate)
    return model, optimizer, loader, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)


def endless(loader: Iterable[Any]) -> Iterator[Any]:
    while True:
        yield from loader


def now() -> float:
    if not ON_GPU:
        return time.thread_time()
    torch.cuda.synchronize()
    return time.perf_counter()


def per_step(loop: Callable[[], int]) -> Chunk:
    def chunk() -> float:
        start = now()
        count = loop()
        return (now() - start) / count

    return chunk


def plain_loop(engine: Any) -> Chunk:
    model, optimizer, loader, _ = engine.prepare(*parts())
    forward, batches = getattr(engine, "forward", call), endless(loader)

    def loop() -> int:
        for step, (x, y) in enumerate(batches, 1):
            engine.backward(nn.functional.mse_loss(forward(model, x), y))
            optimizer.step()
            optimizer.zero_grad()
            if step == STEPS:
                break
        return step

    return per_step(loop)


def scheduler_steps(engine: Any) -> int:
    """A schedule counts samples: prepared ones step once for each process in one call, others are called as often."""
    by_hand = isinstance(engine, (Raw, Fabric)) and dist.is_initialized()
    return dist.get_world_size() if by_hand else 1


def full_raw_loop(engine: Any) -> Chunk:
    model, optimizer, loader, scheduler = engine.prepare(*parts())
    times, batches = scheduler_steps(engine), endless(loader)

    def loop() -> int:
        for step, (x, y) in enumerate(batches, 1):
            nn.functional.mse_loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            for _ in range(times):
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
    times, batches = scheduler_steps(engine), endless(loader)

    def loop() -> int:
        for step, (x, y) in enumerate(batches, 1):
            with engine.accumulate(model):
                engine.backward(nn.functional.mse_loss(model(x), y))
                if engine.sync_gradients:
                    engine.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                for _ in range(times):
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
        for _ in range(10):
            for _ in loader:
                break
        return 10

    return per_step(loop)


def show(title: str, times: dict[str, list[float]]) -> None:
    if dist.is_initialized() and dist.get_rank():
        return
    print(f"\n{title:48s} {'us':>9s} {'ratio to raw':>13s}")
    for name, own in times.items():
        print(f"{name:48s} {statistics.median(own) * 1e6:9.1f} {ratio(own, times['raw']):13.3f}")


def engines(precision: str) -> dict[str, Any]:
    if not ON_GPU:
        os.environ["ACCELERATE_USE_CPU"] = "1"  # Accelerate takes several processes on the CPU for one without it
    runtime = Accelerator(cpu=not ON_GPU, mixed_precision=precision)  # joins the processes for all
    found = {"raw": Raw(precision), "runtime": runtime}
    if find_spec("accelerate"):
        from accelerate import Accelerator as Other
        from accelerate.state import AcceleratorState

        AcceleratorState._reset_state()  # noqa: SLF001  another precision
        found["accelerate"] = Other(cpu=not ON_GPU, mixed_precision=precision)
    if find_spec("lightning"):
        found["fabric"] = Fabric(precision)
    return found


TASKS = (
    ("data, forward, backward, step, zero_grad", plain_loop, "no"),
    ("the same, accumulate, clip, scheduler", full_loop, "no"),
    ("bf16: data, forward, backward, step, zero_grad", plain_loop, "bf16"),
    ("start of an epoch", epoch_start, "no"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--gpu", action="store_true", help="on a GPU")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    for title, make, precision in TASKS:
        found = engines(precision)
        show(title, in_turns({name: make(engine) for name, engine in found.items()}, rounds, warm_up=2))


if __name__ == "__main__":
    main()
