"""`runtime env`: what a bug report needs."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import typer

from runtime.launch.machine import core_count

_PACKAGES = ("torch-migrate", "torch", "numpy")
_OPTIONAL = (
    "accelerate cloudpickle datasets lightning mlflow safetensors tensorboard torch-tpu torch-xla torchvision tqdm "
    "transformers triton wandb"
).split()
_SETTINGS = (
    "ACCELERATE_",
    "CUDA_",
    "FSDP_",
    "GLOO_",
    "GROUP_",
    "HIP_VISIBLE_DEVICES",
    "KMP_",
    "LOCAL_",
    "MASTER_",
    "MKL_",
    "NCCL_",
    "OMP_",
    "OMPI_COMM_",
    "PET_",
    "PJRT_DEVICE",
    "PMI_",
    "PYTHONHASHSEED",
    "PYTORCH_",
    "RANK",
    "ROCR_VISIBLE_DEVICES",
    "RUNTIME_",
    "SLURM_",
    "TORCH",
    "TPU_",
    "WORLD_SIZE",
    "ZE_AFFINITY_MASK",
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|CREDENTIAL|JWT|KEY$")  # a report is read by others


def env_command() -> None:
    """Show versions, devices, backends, the file of settings and the variables of a launch, for a bug report."""
    for name, value in (*_versions(), *_devices(), *_file(os.environ), *_settings(os.environ)):
        typer.echo(f"{name}: {value}")


def _versions() -> Iterator[tuple[str, str]]:
    yield "platform", platform.platform()
    yield "python", f"{platform.python_version()} ({sys.executable})"
    from importlib import metadata  # late: not to print help

    for name in (*_PACKAGES, *_OPTIONAL):
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            if name in _PACKAGES:
                yield name, "not installed"


def _devices() -> Iterator[tuple[str, str]]:
    yield "cores", str(core_count())
    try:
        from runtime.devices.description import described  # late: the other commands and all help do without torch
    except ImportError as error:
        yield "devices", f"unknown, torch cannot be imported: {error}"
        return
    yield from described()


def _file(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    from runtime.launch import configfile  # late: not to print help

    path = configfile.find(environ, Path.cwd())
    yield "settings", f"{path} (runtime launch --explain shows them)" if path else "no file"


def _settings(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in sorted(environ.items()):
        if name.startswith(_SETTINGS):
            yield name, "(not shown)" if _SECRET.search(name) else value
