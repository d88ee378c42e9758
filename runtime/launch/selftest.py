"""What `runtime test` runs on every process: whether this setup computes what it should.

    runtime launch [options] -m runtime.launch.selftest

Each check raises an error on the process where something is wrong; that ends the run, as an error in a script does.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from runtime import Accelerator
from runtime.errors import PrecisionError

_PRECISIONS = ("no", "bf16", "fp16")
_STEPS = 4
_PER_PROCESS = 4  # samples of a batch on each process


class Skipped(Exception):
    """A check that says nothing here; the message is why."""


def main() -> None:
    began = time.monotonic()
    accelerator = Accelerator(mixed_precision="no", split_batches=True)
    size = accelerator.num_processes
    accelerator.print(f"{size} process{'es' if size > 1 else ''}, {accelerator.device.type}, {_backend()}")
    passed = sum(_run(accelerator, name, check) for name, check in CHECKS)
    skipped = len(CHECKS) - passed
    accelerator.print(f"{passed} passed, {skipped} skipped, none failed, in {time.monotonic() - began:.0f} s")
    accelerator.end_training()


def _backend() -> str:
    return str(torch.distributed.get_backend()) if torch.distributed.is_initialized() else "no process group"


def _run(accelerator: Accelerator, name: str, check: Callable[[Accelerator], str]) -> bool:
    try:
        detail, word = check(accelerator), "ok"
    except Skipped as reason:
        detail, word = str(reason), "skipped"
    except Exception as error:  # noqa: BLE001  whatever it is, it is the result
        sys.exit(f"FAILED   {name}, on process {accelerator.process_index}: {type(error).__name__}: {error}")
    accelerator.wait_for_everyone()
    accelerator.print(f"{word:8} {name:22} {detail}")
    return word == "ok"


def _expect(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise AssertionError(f"{what} gave {found!r}, and {expected!r} was expected")


def _collectives(accelerator: Accelerator) -> str:
    size, rank, device = accelerator.num_processes, accelerator.process_index, accelerator.device
    own = torch.full((2,), float(rank), device=device)
    _expect(accelerator.gather(own).tolist(), [float(r) for r in range(size) for _ in range(2)], "gather")
    _expect(accelerator.reduce(own, "sum").tolist(), [float(sum(range(size)))] * 2, "reduce")
    padded = accelerator.pad_across_processes(torch.ones(rank + 1, device=device))
    _expect(len(padded), size, "pad_across_processes")
    from runtime import broadcast, gather_object

    _expect(broadcast(own.clone()).tolist(), [0.0, 0.0], "broadcast")
    _expect(gather_object([f"process {rank}"]), [f"process {r}" for r in range(size)], "gather_object")
    return "gather, reduce, broadcast, pad, objects"


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


def _data(samples: int) -> TensorDataset:
    generator = torch.Generator().manual_seed(1)
    return TensorDataset(torch.randn(samples, 8, generator=generator), torch.randn(samples, 1, generator=generator))


def _training(accelerator: Accelerator) -> str:
    """A few steps, against plain PyTorch on the whole batches."""
    batch = _PER_PROCESS * accelerator.num_processes
    data = _data(batch * _STEPS)
    alone = _model().to(accelerator.device)
    descent = torch.optim.SGD(alone.parameters(), lr=0.1)
    for x, y in DataLoader(data, batch):
        descent.zero_grad()
        loss = nn.functional.mse_loss(alone(x.to(accelerator.device)), y.to(accelerator.device))
        loss.backward()  # type: ignore[no-untyped-call]
        descent.step()

    model = _model()
    model, optimizer, loader = accelerator.prepare(
        model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch)
    )
    for x, y in loader:
        optimizer.zero_grad()
        accelerator.backward(nn.functional.mse_loss(model(x), y))
        optimizer.step()
    found = accelerator.get_state_dict(model)
    difference = 0.0
    for name, value in alone.state_dict().items() if accelerator.is_main_process else ():
        difference = max(difference, float((value.cpu() - found[name].cpu()).abs().max()))
    if not difference < 1e-4:
        raise AssertionError(f"parameters differ by {difference:.1e} from those of one process in plain PyTorch")
    return f"parameters after {_STEPS} steps as in plain PyTorch (largest difference {difference:.0e})"


def _evaluation(accelerator: Accelerator) -> str:
    samples = 8 * accelerator.num_processes + 3  # N processes cannot share these evenly
    loader = accelerator.prepare(DataLoader(TensorDataset(torch.arange(samples)), 4 * accelerator.num_processes))
    with torch.no_grad():
        seen = torch.cat([accelerator.gather_for_metrics(batch) for (batch,) in loader])
    _expect(sorted(seen.tolist()), list(range(samples)), "gather_for_metrics")
    return f"each of {samples} samples once"


def _checkpoint(accelerator: Accelerator) -> str:
    if accelerator.num_processes != _local_size():
        raise Skipped("several machines need a folder that all see")
    from runtime import broadcast_object_list

    model = _model()
    model, _ = accelerator.prepare(model, torch.optim.AdamW(model.parameters()))
    with tempfile.TemporaryDirectory(prefix="runtime-test-") as own:
        (folder,) = broadcast_object_list([own])
        place = str(Path(folder) / "checkpoint")
        accelerator.save_state(place)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        with torch.no_grad():
            for value in model.parameters():
                value.zero_()
        accelerator.load_state(place)
        same = all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
        accelerator.wait_for_everyone()  # the folder goes when all have read
    _expect(same, True, "load_state after save_state")
    return "save_state and load_state give the same parameters"


def _local_size() -> int:
    from runtime.state import PartialState

    return PartialState()._world.local_size  # noqa: SLF001  a view of it


def _precision(name: str) -> Callable[[Accelerator], str]:
    def check(accelerator: Accelerator) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # it would compute in another one
            try:
                own = Accelerator(mixed_precision=name)
            except (PrecisionError, ValueError, UserWarning) as error:
                raise Skipped(str(error)) from None
        model = _model()
        model, optimizer = own.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.1))
        x, y = (part.to(own.device) for part in _data(8).tensors)
        losses = []
        for _ in range(_STEPS):
            loss = nn.functional.mse_loss(model(x).float(), y)
            optimizer.zero_grad()
            own.backward(loss)
            optimizer.step()
            losses.append(loss.item())
        if not losses[-1] < losses[0]:
            raise AssertionError(f"the loss does not fall: {losses[0]:.3g}, then {losses[-1]:.3g}")
        return f"the loss falls from {losses[0]:.2f} to {losses[-1]:.2f}"

    return check


CHECKS: tuple[tuple[str, Callable[[Accelerator], str]], ...] = (
    ("collectives", _collectives),
    ("training", _training),
    ("evaluation", _evaluation),
    ("save and load", _checkpoint),
    *((f"mixed_precision={name}", _precision(name)) for name in _PRECISIONS),
)


if __name__ == "__main__":
    main()
