"""Kernels of a GPU that compute the same in every run, as far as there are such.

Else two runs of the original differ from the first step on, and nothing could be asked of the conversion. What has no
such kernel stays as it is, which a script would be warned of: that is nothing that its conversion says.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.backends import ContextProp


def repeat_themselves() -> None:
    """Take them from now on, whatever the script says of speed."""
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # set by its class
    warnings.filterwarnings("ignore", ".*does not have a deterministic implementation")
    cudnn: Any = torch.backends.cudnn
    cudnn.benchmark = False
    # Trying out which kernel is fastest chooses another one from run to run.
    held: Any = ContextProp
    type(cudnn).benchmark = held(torch._C._get_cudnn_benchmark, _ignored)  # noqa: SLF001  as PyTorch makes it


def _ignored(_: bool) -> None:
    """The script's wish for speed."""
