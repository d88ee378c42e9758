"""A small training for the tests on a GPU: as a plain PyTorch program, and with an accelerator."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch
from ranks import apart, run_ranks
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from runtime import Accelerator
from runtime.devices.cpu import Cpu

ROOT = Path(__file__).resolve().parents[2]
ON_CPU = os.environ.get("GPU_TESTS_ON") == "cpu"
DEVICE = torch.device("cpu" if ON_CPU else "cuda")
DTYPES = {"no": None, "fp16": torch.float16, "bf16": torch.bfloat16}
SAMPLES, BATCH, LOUD = 88, 16, 2  # the last batch is short; from step LOUD on fp16 overflows once

if ON_CPU:
    Cpu.scales = True  # has float16 with a scaler, as if it were a GPU


def accelerator(**options: Any) -> Accelerator:
    """One on the GPU."""
    return Accelerator(cpu=ON_CPU, **options)


def on_two(function: Any, *arguments: Any, timeout_s: float = 120) -> list[Any]:
    """What `function` returns on each of two processes that share the GPU."""
    return run_ranks(function, 2, *arguments, timeout_s=timeout_s, own=apart)


def launched(folder: Path, machines: int, *words: str, limit_s: float = 120) -> list[tuple[str, str, int]]:
    """`runtime launch` of a script, here or on so many "machines": what each printed, its errors and its status."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    place = ["--num_machines", str(machines), "--main_process_ip", "127.0.0.1", "--main_process_port", port]
    place += ["-n", str(machines)] if ON_CPU else []
    command = [sys.executable, "-m", "runtime", "launch", *(["--cpu"] if ON_CPU else [])]
    started = [
        subprocess.Popen(
            [*command, *([*place, "--machine_rank", str(rank)] if machines > 1 else []), *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **apart(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(machines)
    ]
    try:
        return [(*process.communicate(timeout=limit_s), process.returncode) for process in started]
    finally:
        for process in started:
            process.kill()


class Net(nn.Module):
    """Convolution, running statistics, random numbers of the device, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten())
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(6 * 36, 4)
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.features(x))) * self.scale


def parts(optimizer: str) -> tuple[Any, ...]:
    """Model, optimizer, loader and schedule, on the CPU, the same at every call."""
    torch.manual_seed(0)
    model = Net()
    kinds = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.01),
        "fused": lambda p: torch.optim.AdamW(p, lr=0.01, fused=True),
    }
    data = TensorDataset(torch.randn(SAMPLES, 1, 8, 8), torch.randint(4, (SAMPLES,)))
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, generator=torch.Generator().manual_seed(1))
    return model, kinds[optimizer], loader, lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.5)


def loudness(precision: str, step: int) -> float:
    """What multiplies a loss: once so much that float16 has no number for the gradients."""
    return 1e30 if precision == "fp16" and step == LOUD else 1.0


def seen(model: nn.Module, losses: list[float], rates: list[float], scale: float) -> dict[str, Any]:
    """What two trainings are compared by."""
    state = {key: value.cpu() for key, value in model.state_dict().items()}
    return {"losses": losses, "rates": rates, "scale": scale, "state": state}


def plain(precision: str, optimizer: str, window: int, clips: bool, epochs: int = 2) -> dict[str, Any]:
    """The training as PyTorch's own documentation writes it."""
    model, make, loader, schedule = parts(optimizer)
    model.to(DEVICE)
    optimizer = make(model.parameters())
    scheduler = schedule(optimizer)
    scaler = torch.amp.GradScaler(DEVICE.type, enabled=precision == "fp16", growth_interval=2)
    losses, rates, step = [], [], 0
    for _ in range(epochs):
        for number, batch in enumerate(loader, 1):
            x, y = (tensor.to(DEVICE) for tensor in batch)
            with torch.autocast(DEVICE.type, DTYPES[precision], enabled=precision != "no"):
                output = model(x)
            loss = nn.functional.cross_entropy(output.float(), y) * loudness(precision, step)
            scaler.scale(loss / window).backward()
            losses.append(loss.item())
            step += 1
            if number % window and number < len(loader):
                continue
            if clips:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            before = scaler.get_scale()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            if scaler.get_scale() >= before:
                scheduler.step()
            rates.append(optimizer.param_groups[0]["lr"])
    return seen(model, losses, rates, scaler.get_scale() if precision == "fp16" else 1.0)


def converted(
    accelerator: Accelerator, precision: str, optimizer: str, window: int, clips: bool, epochs: int = 2
) -> dict[str, Any]:
    """The same with an accelerator."""
    model, make, loader, schedule = parts(optimizer)
    optimizer = make(model.parameters())
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, schedule(optimizer))
    losses, rates, step = [], [], 0
    for _ in range(epochs):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(x), y) * loudness(precision, step)
                accelerator.backward(loss)
                losses.append(loss.item())
                step += 1
                if clips and accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if accelerator.sync_gradients:
                rates.append(optimizer.param_groups[0]["lr"])
    scale = accelerator.scaler.get_scale() if accelerator.scaler is not None else 1.0
    return seen(accelerator.unwrap_model(model), losses, rates, scale)
