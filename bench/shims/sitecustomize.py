"""What old programs of the corpus need of a machine of today that has no GPU: imported by every Python that runs them.

Packages for plots and logs are empty stand-ins, names that NumPy and PyTorch have dropped are there again, and loaders
load in their own process. `CORPUS` names the folder of the corpus; `CORPUS_SHIMS` says which of the others are wanted.
"""

from __future__ import annotations

import importlib
import inspect
import io
import os
import sys
import types
from typing import Any

EMPTY = (
    "matplotlib", "matplotlib.pyplot", "matplotlib.ticker", "matplotlib.animation", "matplotlib.gridspec",
    "matplotlib.cm", "mpl_toolkits.mplot3d", "seaborn", "visdom", "cv2", "imageio", "tensorboard",
)  # fmt: skip
NUMPY = {"float": float, "int": int, "bool": bool, "object": object}
TYPES = ("Float", "Long", "Int", "Byte", "Bool", "Double", "Half")
NOTHING = ("set_device", "synchronize", "empty_cache", "reset_peak_memory_stats", "manual_seed", "manual_seed_all")


def install(corpus: str, wanted: set[str]) -> None:
    """All of it; before the program imports anything."""
    sys.path[:0] = [os.path.join(corpus, "stubs")]
    sys.path.append(os.path.join(corpus, "site"))
    anything = importlib.import_module("_any")
    anything.install(*EMPTY)
    import numpy as np
    import torch

    board = types.ModuleType("torch.utils.tensorboard")
    board.SummaryWriter = type("SummaryWriter", (anything.Any,), {})  # type: ignore[attr-defined]
    sys.modules["torch.utils.tensorboard"] = torch.utils.tensorboard = board
    for name, kind in NUMPY.items():
        if name not in vars(np):
            setattr(np, name, kind)
    setattr(np, "Inf", np.inf)  # noqa: B010 - the name that NumPy had for it
    run = os.popen
    os.popen = lambda command, *more: io.StringIO("24 80") if command.startswith("stty size") else run(command, *more)
    _old_schedulers(torch.optim.lr_scheduler)
    _plain_loading(torch)
    if "--old-torch" in wanted:
        _old_torch(torch)
    if "--cuda-noop" in wanted:
        _no_gpu(torch)


def _old_schedulers(module: Any) -> None:
    """`verbose=` went away with torch 2.7."""
    for kind in list(vars(module).values()):
        is_one = isinstance(kind, type) and issubclass(kind, module.LRScheduler | module.ReduceLROnPlateau)
        if is_one and "__init__" in vars(kind):
            if "verbose" not in inspect.signature(kind.__init__).parameters:
                kind.__init__ = _without_verbose(kind.__init__)


def _without_verbose(run: Any) -> Any:
    def __init__(self: Any, *arguments: Any, verbose: Any = None, **options: Any) -> None:  # noqa: N807
        run(self, *arguments, **options)

    return __init__


def _plain_loading(torch: Any) -> None:
    """torch.load read every object once, and pinned memory needs a GPU."""
    load, kind = torch.load, torch.utils.data.DataLoader
    torch.load = lambda *arguments, **options: load(*arguments, **{"weights_only": False, **options})
    run = kind.__init__

    def __init__(self: Any, *arguments: Any, **options: Any) -> None:  # noqa: N807
        for name in ("prefetch_factor", "persistent_workers", "multiprocessing_context", "worker_init_fn"):
            options.pop(name, None)
        given = list(arguments)
        if len(given) > 5:
            given[5] = 0
        if "num_workers" in options:
            options["num_workers"] = 0
        options.pop("pin_memory", None)
        run(self, *given[:7], **options)

    kind.__init__ = __init__


def _old_torch(torch: Any) -> None:
    """`loss.data[0]`, and names without their underscore."""
    get = torch.Tensor.__getitem__
    torch.Tensor.__getitem__ = lambda self, at: self if self.dim() == 0 and at == 0 else get(self, at)
    torch.nn.NLLLoss2d = torch.nn.NLLLoss
    torch.nn.init.xavier_uniform = torch.nn.init.xavier_uniform_
    torch.nn.utils.clip_grad_norm = torch.nn.utils.clip_grad_norm_


def _no_gpu(torch: Any) -> None:
    """What is for a GPU means the CPU."""
    cpu, device = torch.device("cpu"), torch.device

    def plain(value: Any) -> Any:
        is_gpu = isinstance(value, str | device) and str(value).startswith("cuda")
        return cpu if is_gpu or (isinstance(value, int) and not isinstance(value, bool)) else value

    def moving(run: Any) -> Any:
        def to(self: Any, *arguments: Any, **options: Any) -> Any:
            return run(self, *map(plain, arguments), **{name: plain(value) for name, value in options.items()})

        return to

    for kind in (torch.Tensor, torch.nn.Module):
        kind.to = moving(kind.to)
        kind.cuda = lambda self, *_, **__: self
    for name in TYPES:
        setattr(torch.cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor"))
    for name in NOTHING:
        setattr(torch.cuda, name, lambda *_, **__: None)
    torch.cuda.current_device = lambda: 0


if "CORPUS" in os.environ and "migrate" not in sys.orig_argv:
    install(os.environ["CORPUS"], set(os.environ.get("CORPUS_SHIMS", "").split()))
