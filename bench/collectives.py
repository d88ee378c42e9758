"""What an exchange between two processes costs through the runtime, next to PyTorch's own collectives.

    torchrun --nproc_per_node 2 bench/collectives.py [--rounds N]

Accelerate and Lightning Fabric take part where they are installed. The variants take turns in one pair of processes, in
a shuffled order that both share; the ratio is the median over the rounds of a variant's time to the raw one's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["ACCELERATE_USE_CPU"] = "1"

import torch
import torch.distributed as dist
from turns import in_turns, ratio

from runtime import Accelerator, gather_object

Call = Callable[[], Any]
GATHER = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor


def raw_gather(tensor: torch.Tensor) -> torch.Tensor:
    own = tensor.reshape(1) if tensor.ndim == 0 else tensor
    out = torch.empty((dist.get_world_size() * own.shape[0], *own.shape[1:]), dtype=own.dtype)
    GATHER(out, own)
    return out


def raw_reduce(tensor: torch.Tensor) -> torch.Tensor:
    own = tensor.clone()
    dist.all_reduce(own)
    return own / dist.get_world_size()


def raw_gather_object(item: Any) -> list[Any]:
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, item)
    return found


def peers() -> dict[str, Any]:
    """Those that are installed; each is there under the names of the tasks."""
    found: dict[str, Any] = {}
    with suppress(ImportError):
        from accelerate import Accelerator as Other
        from accelerate.utils import gather_object as other_gather_object

        found["accelerate"] = (Other(cpu=True), other_gather_object)
    with suppress(ImportError):
        from lightning.fabric import Fabric

        fabric = Fabric(accelerator="cpu", devices=dist.get_world_size(), strategy="ddp")
        fabric.launch()
        found["fabric"] = (fabric, None)
    return found


def tasks(engine: Accelerator, others: dict[str, Any]) -> dict[str, tuple[int, dict[str, Call]]]:
    """Task → how often a round does it, and the call of each variant; `raw` is the base."""
    scalar, large = torch.tensor(1.0), torch.ones(262_144)
    ten = {f"metric {i}": torch.full((8,), float(i)) for i in range(10)}
    pair = (torch.ones(8, 10), torch.ones(8, dtype=torch.int64))
    objects = [{"id": i, "text": "x" * 20} for i in range(32)]
    table: dict[str, tuple[int, dict[str, Call]]] = {}
    for name, repeats, data, raw in (
        ("gather of a scalar", 40, scalar, lambda: raw_gather(scalar)),
        ("gather of 1 MB", 10, large, lambda: raw_gather(large)),
        ("gather of a dict of ten", 5, ten, lambda: [raw_gather(tensor) for tensor in ten.values()]),
    ):
        calls: dict[str, Call] = {"raw": raw, "runtime": lambda data=data: engine.gather(data)}
        if "accelerate" in others:
            calls["accelerate"] = lambda data=data: others["accelerate"][0].gather(data)
        if "fabric" in others:
            calls["fabric"] = lambda data=data: others["fabric"][0].all_gather(data)
        table[name] = (repeats, calls)
    both = {"raw": lambda: [raw_gather(tensor) for tensor in pair], "runtime": lambda: engine.gather_for_metrics(pair)}
    small = {"raw": lambda: raw_reduce(scalar), "runtime": lambda: engine.reduce(scalar, "mean")}
    big = {"raw": lambda: raw_reduce(large), "runtime": lambda: engine.reduce(large, "mean")}
    wait: dict[str, Call] = {"raw": dist.barrier, "runtime": engine.wait_for_everyone}
    many: dict[str, Call] = {"raw": lambda: raw_gather_object(objects), "runtime": lambda: gather_object(objects)}
    if "accelerate" in others:
        other, other_objects = others["accelerate"]
        both["accelerate"] = lambda: other.gather_for_metrics(pair)
        small["accelerate"] = lambda: other.reduce(scalar, "mean")
        big["accelerate"] = lambda: other.reduce(large, "mean")
        wait["accelerate"] = other.wait_for_everyone
        many["accelerate"] = lambda: other_objects(objects)
    if "fabric" in others:
        fabric = others["fabric"][0]
        both["fabric"] = lambda: fabric.all_gather(pair)
        small["fabric"] = lambda: fabric.all_reduce(scalar.clone(), reduce_op="mean")
        big["fabric"] = lambda: fabric.all_reduce(large.clone(), reduce_op="mean")
        wait["fabric"] = fabric.barrier
    return {
        **table,
        "gather_for_metrics of a pair": (20, both),
        "gather_object of 32 dicts": (10, many),
        "reduce of a scalar": (40, small),
        "reduce of 1 MB": (10, big),
        "wait_for_everyone": (40, wait),
    }


def measured(repeats: int, calls: dict[str, Call], rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds per call of each variant in each round: of the wall, and of the training thread's CPU."""

    def spent(call: Call) -> tuple[float, float]:
        dist.barrier()
        wall, thread = time.perf_counter(), time.thread_time()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - wall) / repeats, (time.thread_time() - thread) / repeats

    return in_turns({name: partial(spent, call) for name, call in calls.items()}, rounds, warm_up=2)


def show(title: str, times: dict[str, list[tuple[float, float]]]) -> None:
    if dist.get_rank():
        return
    print(f"\n{title:32s} {'wall us':>9s} {'ratio':>7s} {'thread us':>10s} {'ratio':>7s}")
    for name, own in times.items():
        cells = []
        for kind in (0, 1):
            figures = [spent[kind] for spent in own]
            cells += [statistics.median(figures) * 1e6, ratio(figures, [spent[kind] for spent in times["raw"]])]
        print(f"{name:32s} {cells[0]:9.0f} {cells[1]:7.2f} {cells[2]:10.0f} {cells[3]:7.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=25)
    rounds = parser.parse_args().rounds
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    engine = Accelerator(cpu=True)
    for title, (repeats, calls) in tasks(engine, peers()).items():
        show(title, measured(repeats, calls, rounds))
    engine.end_training()


if __name__ == "__main__":
    main()
