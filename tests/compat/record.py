"""Run converted scripts on one library, again and again, and write down what they computed.

    record.py runtime|accelerate OUT.json SCRIPT ...     one process; several if a launcher's variables are set

Every script runs once for each setting, in this process. Told are the loss of every backward, the learning rate of
every step that an optimizer really takes, and the parameters that are left. `accelerate` stands in for the runtime
under its name, so both run the same file.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import itertools
import json
import os
import random
import runpy
import sys
import tempfile
import types
import warnings
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.optim.optimizer import register_optimizer_step_post_hook

SETTINGS = [
    {"gradient_accumulation_steps": steps, "mixed_precision": precision, "split_batches": split}
    for steps, precision, split in itertools.product((1, 2), ("no", "bf16"), (False, True))
]


class Record:
    """What one run computed."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.rates: list[float] = []
        self.accelerators: list[Any] = []

    def parameters(self) -> list[float]:
        """The sum and the norm of every parameter of every prepared model."""
        told = []
        for accelerator in self.accelerators:
            for model in accelerator._models:
                for parameter in accelerator.unwrap_model(model).parameters():
                    value = parameter.detach().double()
                    told += [value.sum().item(), value.norm().item()]
        return told


def _original(library: str) -> Any:
    return importlib.import_module(f"{library}.accelerator").Accelerator


def _configuration(library: str) -> Any:
    home = "runtime.handlers" if library == "runtime" else "accelerate.utils"
    return importlib.import_module(home).DataLoaderConfiguration


def watched(library: str, setting: dict[str, Any], record: Record) -> type:
    """The library's `Accelerator`, with these settings for the script's own, and what it computes told."""

    class Accelerator(_original(library)):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            split = setting["split_batches"]
            data = _configuration(library)(split_batches=split, use_seedable_sampler=True, data_seed=7)
            options.pop("split_batches", None)
            options |= {"cpu": True, "dataloader_config": data, "mixed_precision": setting["mixed_precision"]}
            options["gradient_accumulation_steps"] = setting["gradient_accumulation_steps"]
            super().__init__(*arguments, **options)
            record.accelerators.append(self)

        def backward(self, loss: torch.Tensor, **options: Any) -> None:
            record.losses.append(loss.detach().double().item())
            super().backward(loss, **options)

    return Accelerator


def named(accelerator: type) -> types.ModuleType:
    """A module `runtime` for the script: Accelerate's names, and this accelerator."""
    import accelerate
    import accelerate.utils

    def look_up(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(accelerate, name, None) or getattr(accelerate.utils, name)

    module = types.ModuleType("runtime")
    module.__dict__.update(Accelerator=accelerator, __getattr__=look_up)
    return module


def _with(module: Any, accelerator: type) -> Any:
    module.Accelerator = accelerator
    return module


def run(library: str, script: Path, setting: dict[str, Any]) -> dict[str, Any]:
    """What the script computes with this setting."""
    record = Record()
    hook = register_optimizer_step_post_hook(lambda optimizer, *_: record.rates.append(optimizer.param_groups[0]["lr"]))
    own, arguments, folder = sys.modules.get("runtime"), sys.argv, os.getcwd()
    random.seed(0)
    torch.manual_seed(0)
    with contextlib.suppress(ImportError):
        import numpy as np

        np.random.seed(0)  # noqa: NPY002  what scripts draw from
    error = ""
    accelerator = watched(library, setting, record)
    place = named(accelerator) if library != "runtime" else _with(own, accelerator)
    with tempfile.TemporaryDirectory() as empty, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(empty)
        sys.modules["runtime"], sys.argv = place, [str(script)]
        sys.path.insert(0, str(script.parent))
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                runpy.run_path(str(script), run_name="__main__")
        except (Exception, SystemExit) as raised:  # noqa: BLE001  it is what the run came to
            error = f"{type(raised).__name__}: {raised}"
        finally:
            os.chdir(folder)
            sys.path.remove(str(script.parent))
            sys.argv = arguments
            sys.modules.pop("runtime")
            if own is not None:
                sys.modules["runtime"] = own
            hook.remove()
    told = {"losses": record.losses, "rates": record.rates, "parameters": record.parameters(), "error": error}
    if library != "runtime":
        from accelerate.state import AcceleratorState, GradientState

        AcceleratorState._reset_state()
        GradientState._reset_state()
    return told


def main() -> None:
    library, out, *scripts = sys.argv[1:]
    torch.set_num_threads(1)
    # A script that leaves the process group would end the runs after it.
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    importlib.import_module(library)
    _original(library)(cpu=True)  # joins the processes
    leave, dist.destroy_process_group = dist.destroy_process_group, lambda *_: None
    told = [
        {"script": script, "setting": setting, **run(library, Path(script), setting)}
        for script in scripts
        for setting in SETTINGS
    ]
    rank = int(os.environ.get("RANK", "0"))
    Path(f"{out}.{rank}").write_text(json.dumps(told))
    if dist.is_initialized():
        leave()


if __name__ == "__main__":
    main()
