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
        import torch  # late: the other commands and all help do without
        from torch import distributed as dist
    except ImportError as error:
        yield "devices", f"unknown, torch cannot be imported: {error}"
        return
    yield "cuda", torch.version.cuda or torch.version.hip or "not in this build of torch"
    properties = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    yield "gpus", ", ".join(f"{one.name} ({one.total_memory / 2**30:.0f} GiB)" for one in properties) or "none"
    found = torch.accelerator.current_accelerator() if hasattr(torch, "accelerator") else None
    yield "accelerator", f"{found.type}, {torch.accelerator.device_count()} of it" if found else "none: the CPU"
    has = {name: getattr(dist, f"is_{name}_available", bool)() for name in ("gloo", "nccl", "mpi", "ucc", "xccl")}
    yield "backends", ", ".join(name for name, is_there in has.items() if is_there) or "none"


def _file(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    from runtime.launch import configfile  # late: not to print help

    path = configfile.find(environ, Path.cwd())
    yield "settings", f"{path} (runtime launch --explain shows them)" if path else "no file"


def _settings(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, value in sorted(environ.items()):
        if name.startswith(_SETTINGS):
            yield name, "(not shown)" if _SECRET.search(name) else value
