"""What is known of each kind of device without PyTorch: what a launch needs before any process has a device.

The classes of `runtime.devices` say the rest. Who launches asks one of these records, never for its name.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of device."""

    name: str
    """As in torch.device(name)."""
    called: str
    """Several of them, for people."""
    mask: str = "CUDA_VISIBLE_DEVICES"
    """The variable that says which devices a process may see; without one of its own that of Accelerate's --gpu_ids."""
    per_machine: str | None = None
    """torchrun's word for as many processes as a machine has of it (--nproc-per-node)."""
    is_host: bool = False
    """Whether it is the machine itself, which any number of processes share."""


TPU = Kind(name="tpu", called="TPU chips", mask="TPU_VISIBLE_CHIPS")
XLA = Kind(name="xla", called="XLA devices")
CUDA = Kind(name="cuda", called="GPUs", per_machine="gpu")
XPU = Kind(name="xpu", called="GPUs", mask="ZE_AFFINITY_MASK", per_machine="xpu")
MPS = Kind(name="mps", called="GPUs")
CPU = Kind(name="cpu", called="CPUs", per_machine="cpu", is_host=True)

KINDS = (TPU, XLA, CUDA, XPU, MPS, CPU)

MASKS = tuple(dict.fromkeys(kind.mask for kind in KINDS))
ONE_EACH = ("auto", *(kind.per_machine for kind in KINDS if kind.per_machine))
"""torchrun's words for one process per device."""
