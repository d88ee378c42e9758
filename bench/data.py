"""What it costs to know which samples come next, next to raw PyTorch (and to accelerate and Fabric, where installed).

    python bench/data.py                            indices, the first batch, memory, resuming, the start of an epoch
    torchrun --nproc_per_node 2 bench/data.py       the start of an epoch on two processes; the training thread's time

Variants take turns in a shuffled order, the ratio is the median over the rounds of a variant's time to the raw one's.
Times are CPU time of the calling thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("ACCELERATE_USE_CPU", "1")

import torch
import torch.distributed as dist
from torch.utils.data import BatchSampler, DataLoader, Dataset, DistributedSampler, RandomSampler, TensorDataset
from turns import in_turns, ratio

from runtime import Accelerator, DataLoaderConfiguration
from runtime.data.order import agreed_pieces
from runtime.data.plan import deal_pieces
from runtime.world import World

SAMPLES = 1_000_000
BATCH = 32
WORLDS = (1, 64, 512)
STEPS = 200  # of which the indices are asked for, where there are as many
DONE = 20_000  # batches, of 31,250

Chunk = Callable[[], float]  # does its work once and returns seconds


class Tiny(Dataset[int]):
    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> int:
        return index


def planned(world: int) -> Iterator[Any]:
    """The own indices of the last of `world` processes, as prepared loaders have them; nothing is exchanged."""
    pieces = agreed_pieces(RandomSampler(Tiny()), World())
    return deal_pieces(pieces, world - 1, world, size=BATCH, even=True, drop_last=False)


def streams(world: int) -> dict[str, Callable[[], Iterator[Any]]]:
    """Everybody's iterator over the batches of indices of one process."""
    found: dict[str, Callable[[], Iterator[Any]]] = {
        "raw": lambda: iter(BatchSampler(DistributedSampler(Tiny(), world, world - 1), BATCH, False)),
        "runtime": lambda: planned(world),
    }
    try:
        from accelerate.data_loader import BatchSamplerShard, SeedableRandomSampler
    except ImportError:
        return found
    sampler = SeedableRandomSampler(Tiny(), data_seed=0)
    found["accelerate"] = lambda: iter(BatchSamplerShard(BatchSampler(sampler, BATCH, False), world, world - 1))
    return found


def per_batch(make: Callable[[], Iterator[Any]], world: int) -> Chunk:
    """A batch after the first, made of Python numbers; whatever is made ahead is counted."""
    steps = min(STEPS, SAMPLES // BATCH // world) - 1

    def chunk() -> float:
        batches = make()
        next(batches)
        start = time.thread_time()
        for _ in range(steps):
            next(batches)
        return (time.thread_time() - start) / steps

    return chunk


def first(make: Callable[[], Iterator[Any]]) -> Chunk:
    def chunk() -> float:
        start = time.thread_time()
        next(make())
        return time.thread_time() - start

    return chunk


def heap(make: Callable[[], Iterator[Any]]) -> float:
    """The most of Python's heap that the indices take, in MB."""
    tracemalloc.start()
    batches = make()
    next(batches)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return peak


def tensors(size: int) -> TensorDataset:
    return TensorDataset(torch.arange(size).float().view(size, 1))


def resumes() -> dict[str, Chunk]:
    """The time to the first batch of a run that goes on at batch 20,000 of 31,250."""
    data = tensors(SAMPLES)

    def make() -> DataLoader[Any]:
        return DataLoader(data, batch_size=BATCH, shuffle=True)

    accelerator = Accelerator(cpu=True)
    state = accelerator.prepare(make()).state_dict()
    state |= {"is_in_epoch": True, "place": DONE * BATCH}

    def own() -> Iterator[Any]:
        loader: Any = accelerator.prepare(make())
        loader.load_state_dict(state)
        return iter(loader)

    def by_hand() -> Iterator[Any]:
        batches = iter(make())
        for _ in range(DONE):
            next(batches)
        return batches

    found = {
        "raw": first(by_hand),
        "runtime": first(own),
        "runtime, skip_first_batches": first(lambda: iter(accelerator.skip_first_batches(make(), DONE))),
    }
    if (other := accelerate()) is not None:
        found["accelerate, skip_first_batches"] = first(
            lambda: iter(other.skip_first_batches(other.prepare(make()), DONE))
        )
    return found


def loaders() -> dict[str, Callable[[], Iterator[Any]]]:
    """New iterators over a whole loader of 1e6 samples, on one process."""

    def make() -> DataLoader[Any]:
        return DataLoader(Tiny(), batch_size=BATCH, shuffle=True)

    raw, own = make(), Accelerator(cpu=True).prepare(make())
    found: dict[str, Callable[[], Iterator[Any]]] = {"raw": lambda: iter(raw), "runtime": lambda: iter(own)}
    if (other := accelerate()) is not None:
        theirs = other.prepare(make())
        found["accelerate"] = lambda: iter(theirs)
    return found


def starts() -> dict[str, Chunk]:
    """The fixed cost of an epoch: one batch, then out."""
    world = dist.get_world_size() if dist.is_initialized() else 1
    data = tensors(64 * 4 * world)

    def raw() -> DataLoader[Any]:
        if world == 1:
            return DataLoader(data, batch_size=4, shuffle=True)
        return DataLoader(data, batch_size=4, sampler=DistributedSampler(data))

    def loop(loader: Any) -> Chunk:
        def chunk() -> float:
            start = time.thread_time()
            for epoch in range(50):
                if isinstance(getattr(loader, "sampler", None), DistributedSampler):
                    loader.sampler.set_epoch(epoch)
                for _ in loader:
                    break
            return (time.thread_time() - start) / 50

        return chunk

    def plain() -> DataLoader[Any]:
        return DataLoader(data, batch_size=4, shuffle=True)

    config = DataLoaderConfiguration(use_seedable_sampler=True)
    found = {
        "raw": loop(raw()),
        "runtime": loop(Accelerator(cpu=True).prepare(plain())),
        "runtime, use_seedable_sampler": loop(Accelerator(cpu=True, dataloader_config=config).prepare(plain())),
    }
    if (other := accelerate()) is not None:
        found["accelerate"] = loop(other.prepare(plain()))
    try:
        from lightning.fabric import Fabric
    except ImportError:
        return found
    fabric: Any = Fabric(accelerator="cpu", devices=world)
    fabric.launch()
    return {**found, "fabric": loop(fabric.setup_dataloaders(plain()))}


def accelerate() -> Any | None:
    try:
        from accelerate import Accelerator as Other
    except ImportError:
        return None
    return Other(cpu=True)


def show(title: str, times: dict[str, list[float]], unit: str) -> None:
    if dist.is_initialized() and dist.get_rank():
        return
    scale = {"us": 1e6, "ms": 1e3}[unit]
    print(f"\n{title:52s} {unit:>10s} {'ratio to raw':>13s}")
    for name, own in times.items():
        print(f"{name:52s} {statistics.median(own) * scale:10.2f} {ratio(own, times['raw']):13.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    if "WORLD_SIZE" in os.environ:
        Accelerator(cpu=True)  # joins the processes for all
        show("start of an epoch, shuffled", in_turns(starts(), rounds), "us")
        return
    for world in WORLDS:
        found = {name: per_batch(make, world) for name, make in streams(world).items()}
        show(f"indices of a batch of {BATCH}, world {world}", in_turns(found, rounds), "us")
    for world in (1, 64):
        found = {name: first(make) for name, make in streams(world).items()}
        show(
            f"first batch of an epoch of 1e6 samples, world {world}",
            in_turns(found, max(rounds // 2, 3)),
            "ms",
        )
    found = {name: first(make) for name, make in loaders().items()}
    show("first batch of a loader of 1e6 samples", in_turns(found, max(rounds // 2, 3)), "ms")
    for title, made in (("indices of 1e6 samples, world 8", streams(8)), ("a loader of 1e6 samples", loaders())):
        print(f"\n{'Python heap to the first batch: ' + title:64s} {'MB':>10s}")
        for name, make in made.items():
            print(f"{name:64s} {heap(make):10.2f}")
    show(f"resume at batch {DONE:,} of {SAMPLES // BATCH:,}", in_turns(resumes(), 3), "ms")
    show("start of an epoch, shuffled", in_turns(starts(), rounds), "us")


if __name__ == "__main__":
    main()
