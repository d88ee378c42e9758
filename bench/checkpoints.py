"""What saving and loading costs beside writing, copying and mapping the same bytes.

    python bench/checkpoints.py [--megabytes 200] [--rounds 9] [--folder FOLDER]

The variants take turns, in a shuffled order; the ratio is the median over the rounds of a variant's time to the first
one's. Times are wall-clock time, since a disk is waited for. Accelerate, Fabric and torch.distributed.checkpoint are
shown where they are installed.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("ACCELERATE_USE_CPU", "true")

import torch
from torch import nn
from turns import in_turns, ratio

from runtime import Accelerator

Variant = Callable[[], float]  # does its work once and gives the seconds that count
LAYERS = 12


def timed(
    work: Callable[[], Any], after: Callable[[], Any] | None = None, before: Callable[[], Any] | None = None
) -> Variant:
    def run() -> float:
        if before is not None:
            before()
        os.sync()  # what others have left to write is not ours
        start = time.perf_counter()
        work()
        seconds = time.perf_counter() - start
        if after is not None:
            after()
        return seconds

    return run


def on_disk(path: Path) -> None:
    """Wait until the disk has a file, or all files of a folder: what other libraries leave to the system."""
    for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
        handle = os.open(file, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


def removed(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def built(width: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model and AdamW after one step: two thirds of the bytes are the optimizer's."""
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(width, width) for _ in range(LAYERS)])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model(torch.randn(2, width)).pow(2).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    return model, optimizer


class Subject:
    """A library that saves and loads one training."""

    def __init__(self, folder: Path, width: int) -> None:
        self.path = folder / type(self).__name__
        self.model, self.optimizer = built(width)
        self.tensors = [*self.model.state_dict().values()]
        self.tensors += [t for state in self.optimizer.state.values() for t in state.values()]

    def save(self) -> None:
        raise NotImplementedError

    def load(self) -> None:
        raise NotImplementedError

    def remove(self) -> None:
        """Take away what was saved before: replacing it would be another measurement."""
        removed(self.path)

    def touch(self) -> None:
        """What the next optimizer step does to the state: write every page of it."""
        for state in self.optimizer.state.values():
            for value in state.values():
                value.mul_(1)


class Raw(Subject):
    """torch.save into one file, and torch.load(mmap=True) with load_state_dict."""

    def save(self) -> None:
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, self.path)

    def load(self) -> None:
        state = torch.load(self.path, mmap=True, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])


class Runtime(Subject):
    def __init__(self, folder: Path, width: int) -> None:
        super().__init__(folder, width)
        self.accelerator = Accelerator(cpu=True)
        self.accelerator.prepare(self.model, self.optimizer)

    def save(self) -> None:
        self.accelerator.save_state(self.path)

    def save_behind(self) -> None:
        self.accelerator.save_state(self.path, async_save=True)

    def load(self) -> None:
        self.accelerator.load_state(self.path)


class Accelerate(Subject):
    def __init__(self, folder: Path, width: int) -> None:
        from accelerate import Accelerator as Other

        super().__init__(folder, width)
        self.accelerator = Other(cpu=True)
        self.accelerator.prepare(self.model, self.optimizer)

    def save(self) -> None:
        self.accelerator.save_state(str(self.path))

    def load(self) -> None:
        self.accelerator.load_state(str(self.path))


class Fabric(Subject):
    def __init__(self, folder: Path, width: int) -> None:
        from lightning.fabric import Fabric as Other

        super().__init__(folder, width)
        self.fabric = Other(accelerator="cpu", devices=1)
        self.state = dict(zip(("model", "optimizer"), self.fabric.setup(self.model, self.optimizer), strict=True))

    def save(self) -> None:
        self.fabric.save(self.path, self.state)

    def load(self) -> None:
        self.fabric.load(self.path, self.state)


def content(tensor: torch.Tensor) -> memoryview:
    size = tensor.numel() * tensor.element_size()
    return memoryview((ctypes.c_char * size).from_address(tensor.data_ptr())).cast("B")


def written(path: Path, blob: torch.Tensor) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    view = content(blob)
    while view:
        view = view[os.write(handle, view) :]
    os.fsync(handle)
    os.close(handle)


def copied(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
    for buffer, tensor in pairs:
        buffer.copy_(tensor)


def show(title: str, times: dict[str, list[float]]) -> None:
    base = next(iter(times.values()))
    print(f"\n{title:52s} {'ms':>8s} {'ratio':>7s}")
    for name, own in times.items():
        print(f"{name:52s} {statistics.median(own) * 1e3:8.1f} {ratio(own, base):7.2f}")


def subjects(folder: Path, width: int) -> dict[str, Subject]:
    found: dict[str, Subject] = {}
    for kind in (Raw, Runtime, Accelerate, Fabric):
        try:
            found[kind.__name__] = kind(folder, width)
        except ImportError:
            print(f"{kind.__name__} is not installed")
    return found


def both(first: Callable[[], Any], second: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        first()
        second()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="bench-checkpoints-", dir=options.folder))
    try:
        tables(folder, int((options.megabytes * 1e6 / (12 * LAYERS)) ** 0.5), options.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tables(folder: Path, width: int, rounds: int) -> None:
    found = subjects(folder, width)
    runtime: Any = found["Runtime"]
    size = sum(t.numel() * t.element_size() for t in runtime.tensors)
    print(f"{size / 1e6:.0f} MB in {len(runtime.tensors)} tensors")
    blob = torch.empty(size, dtype=torch.uint8).random_(0, 255)
    floor = {
        "write() and fsync of the bytes": timed(
            lambda: written(folder / "bytes", blob), before=lambda: removed(folder / "bytes")
        )
    }
    names = {"Raw": "torch.save", "Runtime": "runtime", "Accelerate": "Accelerate", "Fabric": "Fabric"}
    own = {
        f"{names[key]} {'save' if key == 'Runtime' else 'and fsync'}": timed(
            s.save if key == "Runtime" else both(s.save, lambda s=s: on_disk(s.path)), before=s.remove
        )
        for key, s in found.items()
    }
    show("durable save", in_turns({**floor, **own}, rounds))

    pairs = [(torch.empty_like(t), t) for t in runtime.tensors]
    behind = {
        "copy into memory that was used before": timed(lambda: copied(pairs)),
        "runtime async_save": timed(runtime.save_behind, runtime.accelerator.wait_for_save),
    }
    show("the training waits for", in_turns(behind, rounds))

    loads = {
        f"{'torch.load(mmap), load_state_dict' if k == 'Raw' else names[k]}": timed(s.load) for k, s in found.items()
    }
    show("load", in_turns(loads, rounds))
    touched = {name: timed(both(s.load, s.touch)) for name, s in zip(loads, found.values(), strict=True)}
    show("load, and write every value of the optimizer once", in_turns(touched, rounds))


if __name__ == "__main__":
    main()
