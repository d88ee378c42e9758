"""What this machine and this build of PyTorch have, in words, for a bug report."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.distributed as dist

from runtime.devices import kinds_here


def described() -> Iterator[tuple[str, str]]:
    """Rows of a name and what there is to say."""
    yield "cuda", torch.version.cuda or torch.version.hip or "not in this build of torch"
    properties = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    yield "gpus", ", ".join(f"{one.name} ({one.total_memory / 2**30:.0f} GiB)" for one in properties) or "none"
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    yield "accelerator", f"{found.type}, {torch.accelerator.device_count()} of it" if found else "none: the CPU"
    yield "devices", ", ".join(name for kind in kinds_here() for name in kind.names())
    has = {name: getattr(dist, f"is_{name}_available", bool)() for name in ("gloo", "nccl", "mpi", "ucc", "xccl")}
    yield "backends", ", ".join(name for name, is_there in has.items() if is_there) or "none"
