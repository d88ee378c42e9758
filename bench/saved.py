"""What a program saves, described so that two runs of it can be compared: the names, and what stands in each file."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import torch

ASIDE = re.compile(r"^\.(.*)\.\d+\.part$")  # runtime/save.py writes aside first
OPTIMIZER = {"state", "param_groups"}  # its moments go by the gradients, which one step of each process makes


def record(into: Path) -> None:
    """From now on every `torch.save` of this process adds a line to `into`."""
    write = torch.save

    def save(item: Any, target: Any, *args: Any, **kwargs: Any) -> None:
        name = os.path.basename(str(getattr(target, "name", target)))
        with into.open("a") as file:
            file.write(json.dumps([ASIDE.sub(r"\1", name), described(item)]) + "\n")
        write(item, target, *args, **kwargs)

    torch.save = save


def files(folder: Path) -> list[list[Any]]:
    """What all processes of a run have saved: pairs of a name and a description, in the order of the processes."""
    lines = (path.read_text().splitlines() for path in sorted(folder.glob("saved*.jsonl")))
    return [json.loads(line) for lines_of_one in lines for line in lines_of_one]


def described(item: Any, with_values: bool = True) -> Any:
    """Keys, classes, shapes and dtypes of `item`; tensors by a hash of their bytes, but for an optimizer's own."""
    if isinstance(item, torch.nn.Module):
        return [type(item).__name__, described(item.state_dict(), with_values)]
    if isinstance(item, torch.Tensor):
        plain = item.detach().cpu().contiguous()
        content = plain.view(torch.uint8).numpy().tobytes() if with_values and plain.dim() else b""
        return [str(item.dtype), list(item.shape), hashlib.sha256(content).hexdigest()[:12]]
    if isinstance(item, dict):
        with_values = with_values and not item.keys() >= OPTIMIZER
        return {str(key): described(value, with_values) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return [described(value, with_values) for value in item]
    return type(item).__name__
