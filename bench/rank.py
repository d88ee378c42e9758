"""One process of a run of `runs.py`: `rank.py record.py ...`, with its own record, frozen where that is asked for."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

import saved
import torch
from torch.nn.modules import batchnorm
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


def freeze() -> None:
    """Nothing is learned: every step is undone, and the batch statistics stay."""
    kept: dict[int, list[torch.Tensor]] = {}

    def keep(optimizer: Optimizer, *_: Any) -> None:
        kept[id(optimizer)] = [p.detach().clone() for p in _parameters(optimizer)]

    def restore(optimizer: Optimizer, *_: Any) -> None:
        with torch.no_grad():
            for parameter, value in zip(_parameters(optimizer), kept.pop(id(optimizer)), strict=True):
                parameter.copy_(value)

    register_optimizer_step_pre_hook(keep)
    register_optimizer_step_post_hook(restore)
    for cls in (batchnorm.BatchNorm1d, batchnorm.BatchNorm2d, batchnorm.BatchNorm3d):
        cls.forward = _with_fixed_statistics(cls.forward)


def _parameters(optimizer: Optimizer) -> list[torch.Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _with_fixed_statistics(forward: Any) -> Any:
    def fixed(self: Any, x: torch.Tensor) -> torch.Tensor:
        momentum, self.momentum = self.momentum, 0.0
        try:
            return forward(self, x)
        finally:
            self.momentum = momentum

    return fixed


def main() -> None:
    if os.environ.get("FROZEN"):
        freeze()
    ranks, rank = Path(os.environ["RANKS"]), os.environ.get("RANK", "0")
    saved.record(ranks / f"saved{rank}.jsonl")
    own = str(ranks / f"rank{rank}.json")
    script = sys.argv[1]
    sys.argv = [script, "--out", own, *sys.argv[2:]]
    sys.path.insert(0, os.path.dirname(script))
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
