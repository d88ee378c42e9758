"""What only a GPU shows: its memory, batches that are copied beside the computation, and saves behind the training.

    python bench/on_gpu.py [--rounds 5]

Variants take turns in one process, in a shuffled order; the ratio is the median over the rounds of a variant's figure
to the first one's. Times are those of the clock, from one wait for the GPU to the next. Accelerate and Lightning
Fabric are shown where they are installed. A step beside other libraries: `python bench/step_overhead.py --gpu`.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from turns import in_turns, ratio

from runtime import Accelerator, FullyShardedDataParallelPlugin

DEVICE = torch.device("cuda")
WIDTH, LAYERS, BATCH, STEPS = 2048, 12, 64, 4  # 50 million parameters: 0.2 GB, and 0.8 GB with AdamW and gradients
ROWS, ROW = 64, 1 << 18  # of a batch: 67 MB, which takes some milliseconds to copy
BATCHES = 24


def built() -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    return model, torch.optim.AdamW(model.parameters(), lr=1e-5)


def raw(model: nn.Module, optimizer: Any) -> tuple[Any, Any, Any]:
    return model.to(DEVICE), optimizer, lambda loss: loss.backward()


def prepared(model: nn.Module, optimizer: Any, **options: Any) -> tuple[Any, Any, Any]:
    accelerator = Accelerator(**options)
    return *accelerator.prepare(model, optimizer), accelerator.backward


def raw_sharded(model: nn.Module, optimizer: Any) -> tuple[Any, Any, Any]:
    from torch.distributed.fsdp import fully_shard

    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-5), lambda loss: loss.backward()


def prepared_sharded(model: nn.Module, optimizer: Any) -> tuple[Any, Any, Any]:
    plugin = FullyShardedDataParallelPlugin(
        auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=["Linear"]
    )
    return prepared(model, optimizer, fsdp_plugin=plugin)


def accelerate(model: nn.Module, optimizer: Any, **options: Any) -> tuple[Any, Any, Any]:
    from accelerate import Accelerator as Other
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state()  # noqa: SLF001  another precision
    accelerator = Other(**options)
    return *accelerator.prepare(model, optimizer), accelerator.backward


def fabric(model: nn.Module, optimizer: Any) -> tuple[Any, Any, Any]:
    from lightning.fabric import Fabric

    engine = Fabric(accelerator="cuda", devices=1)
    return *engine.setup(model, optimizer), engine.backward


def peak(setup: Callable[..., tuple[Any, Any, Any]], autocasts: bool = False) -> float:
    """MB of GPU memory at most, from the model's construction on."""
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    model, optimizer, backward = setup(*built())
    for _ in range(STEPS):
        x = torch.randn(BATCH, WIDTH, device=DEVICE)
        with torch.autocast("cuda", torch.bfloat16, enabled=autocasts):
            output = model(x)
        backward(output.float().square().mean())
        optimizer.step()
        optimizer.zero_grad()
    return (torch.cuda.max_memory_allocated() - before) / 1e6


def memory(rounds: int) -> None:
    others = {"accelerate": accelerate} if find_spec("accelerate") else {}
    plain = {"raw": raw, "runtime": prepared, **others}
    if find_spec("lightning"):
        plain["fabric"] = fabric
    show("peak of memory, MB", {name: partial(peak, setup) for name, setup in plain.items()}, rounds)
    low: dict[str, Callable[[], float]] = {"raw": partial(peak, raw, autocasts=True)}
    low |= {"runtime": partial(peak, partial(prepared, mixed_precision="bf16"))}
    low |= {name: partial(peak, partial(setup, mixed_precision="bf16")) for name, setup in others.items()}
    show("the same with bf16, MB", low, rounds)
    address = f"file://{tempfile.mkdtemp()}/meeting"
    torch.distributed.init_process_group("cpu:gloo,cuda:nccl", init_method=address, rank=0, world_size=1)
    sharded = {"raw FSDP2": partial(peak, raw_sharded), "runtime, FSDP2": partial(peak, prepared_sharded)}
    show("sharded, in a group of one, MB", sharded, rounds)
    torch.distributed.destroy_process_group()


class Rows(Dataset[torch.Tensor]):
    """Rows that cost a worker nothing to make."""

    def __len__(self) -> int:
        return ROWS * BATCHES

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.zeros(ROW)


def epoch(batches: Callable[[], Iterable[torch.Tensor]], weight: torch.Tensor, repeats: int) -> float:
    """Milliseconds for each batch, the first ones left out."""
    began = 0.0
    for number, batch in enumerate(batches()):
        if number == 4:
            torch.cuda.synchronize()
            began = time.perf_counter()
        for _ in range(repeats):
            batch.view(-1, len(weight)) @ weight
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / (BATCHES - 4) * 1e3


def copies(rounds: int) -> None:
    weight = torch.randn(2048, 2048, device=DEVICE)
    pinned = DataLoader(Rows(), batch_size=ROWS, num_workers=4, pin_memory=True, persistent_workers=True)
    pageable = DataLoader(Rows(), batch_size=ROWS, num_workers=4, persistent_workers=True)
    ours = Accelerator().prepare(pinned), Accelerator().prepare(pageable)
    for repeats in (0, 12):
        variants = {
            "x.to(device)": lambda: (x.to(DEVICE) for x in pageable),
            "pinned, x.to(device, non_blocking=True)": lambda: (x.to(DEVICE, non_blocking=True) for x in pinned),
            "runtime": lambda: ours[1],
            "runtime, pinned": lambda: ours[0],
        }
        work = "copies alone" if not repeats else f"copies and {repeats} products"
        runs = {name: partial(epoch, batches, weight, repeats) for name, batches in variants.items()}
        show(f"a batch of 67 MB, {work}, ms", runs, rounds)


def saves(rounds: int) -> None:
    """How long the training waits for a save that goes on behind it."""
    accelerator = Accelerator()
    model, optimizer = accelerator.prepare(*built())
    accelerator.backward(model(torch.randn(BATCH, WIDTH, device=DEVICE)).square().mean())
    optimizer.step()
    tensors = [*model.state_dict().values()]
    tensors += [t for state in optimizer.state.values() for t in state.values() if t.is_cuda]
    pinned = [torch.empty(t.shape, dtype=t.dtype, pin_memory=True) for t in tensors]
    folder = Path(tempfile.mkdtemp())

    def copied() -> float:
        torch.cuda.synchronize()
        start = time.perf_counter()
        for there, tensor in zip(pinned, tensors, strict=True):
            there.copy_(tensor, non_blocking=True)
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e3

    def saved() -> float:
        shutil.rmtree(folder / "state", ignore_errors=True)
        torch.cuda.synchronize()
        start = time.perf_counter()
        accelerator.save_state(folder / "state", async_save=True)
        seconds = time.perf_counter() - start
        accelerator.wait_for_save()
        return seconds * 1e3

    megabytes = sum(t.nbytes for t in tensors) / 1e6
    variants = {"a copy to pinned memory": copied, "save_state(async_save=True)": saved}
    show(f"the training waits for {megabytes:.0f} MB, ms", variants, rounds)
    shutil.rmtree(folder)


def show(title: str, variants: Mapping[str, Callable[[], float]], rounds: int) -> None:
    found = in_turns(variants, rounds, warm_up=1)
    base = next(iter(found.values()))
    print(f"\n{title:48s} {'':>9s} {'ratio':>13s}")
    for name, own in found.items():
        print(f"{name:48s} {statistics.median(own):9.1f} {ratio(own, base):13.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    memory(rounds)
    copies(rounds)
    saves(max(3, rounds // 2))


if __name__ == "__main__":
    main()
