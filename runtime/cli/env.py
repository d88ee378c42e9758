"""`runtime env`: what a bug report needs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping

import typer

from runtime.launch.machine import core_count

_SETTINGS = (
    "ACCELERATE_",
    "CUDA_VISIBLE_DEVICES",
    "FSDP_",
    "MASTER_",
    "NCCL_",
    "OMP_NUM_THREADS",
    "RANK",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "WORLD_SIZE",
)


def env_command() -> None:
    """Show versions, devices and settings, for a bug report."""
    for name, value in (*_versions(), *_devices(), *_settings(os.environ)):
        typer.echo(f"{name}: {value}")


def _versions() -> Iterator[tuple[str, str]]:
    yield "platform", platform.platform()
    yield "python", platform.python_version()
    from importlib import metadata  # late: not to print help

    for name in ("torch-migrate", "torch", "numpy"):
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, "not installed"


def _devices() -> Iterator[tuple[str, str]]:
    yield "cores", str(core_count())
    try:
        import torch  # late: the other commands and all help do without
    except ImportError as error:
        yield "devices", f"unknown, torch cannot be imported: {error}"
        return
    yield "cuda", torch.version.cuda or torch.version.hip or "not in this build of torch"
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    yield "gpus", ", ".join(names) or "none"


def _settings(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield from sorted((name, value) for name, value in environ.items() if name.startswith(_SETTINGS))
