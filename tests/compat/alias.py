"""`accelerate` as another name of `runtime`, so that Accelerate's own scripts run on it.

    python alias.py MODULE     runs a module of the real package's `accelerate.test_utils` on the runtime

Only `test_utils` comes from the real package (installed, or the wheel that ACCELERATE_WHEEL names); every other module
is made here of the runtime's names, and nothing else of the real package can be imported. Names of what the runtime
does not have are there to be imported, and raise when they are used.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import runtime
from runtime import loading, operations
from runtime.data.seeded import SeedableRandomSampler
from runtime.errors import CollectiveError


def prepare_data_loader(dataloader: Any, *arguments: Any, **options: Any) -> Any:
    """The runtime's, with two things that only the scripts ask for.

    `dispatch_batches=True` changes who reads the data, not what comes to whom; the runtime refuses it. And the scripts
    look for the sampler inside of Accelerate's own class around a batch sampler, which is not here.
    """
    options.pop("dispatch_batches", None)
    prepared = loading.prepare_data_loader(dataloader, *arguments, **options)
    if options.get("use_seedable_sampler"):
        prepared.batch_sampler.batch_sampler = prepared.batch_sampler
    return prepared


MODULES = {  # names of Accelerate's modules beside the top → what they hold that the runtime has elsewhere
    "accelerate.accelerator": {},
    "accelerate.state": {},
    "accelerate.data_loader": {
        "SeedableRandomSampler": SeedableRandomSampler,
        "prepare_data_loader": prepare_data_loader,
    },
    "accelerate.utils": {"save": operations.save},
    "accelerate.utils.dataclasses": {},
    "accelerate.utils.operations": {"DistributedOperationException": CollectiveError},
    "accelerate.logging": {},
}
AVAILABLE = {"bf16": True, "fp16": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}


def package_folder() -> str | None:
    """Where the real package is; None if it is nowhere."""
    wheel = os.environ.get("ACCELERATE_WHEEL")
    if wheel:
        return str(Path(wheel) / "accelerate")
    spec = importlib.util.find_spec("accelerate")
    return None if spec is None or not spec.submodule_search_locations else spec.submodule_search_locations[0]


def install(folder: str) -> None:
    """From now on `import accelerate` gives the runtime, and `accelerate.test_utils` what is in `folder`."""
    sys.meta_path.insert(0, _OnlyTestUtils())
    top = _module("accelerate", {})
    top.__path__ = [folder]
    for name, extra in MODULES.items():
        module = _module(name, extra)
        parent, _, last = name.rpartition(".")
        setattr(sys.modules[parent], last, module)


def _module(name: str, extra: dict[str, Any]) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = []
    module.__dict__.update(extra)
    module.__dict__["__getattr__"] = _named
    sys.modules[name] = module
    return module


def _named(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in runtime.__all__:
        return getattr(runtime, name)
    if name.startswith("is_"):
        what = name.removeprefix("is_").removesuffix("_available")
        return lambda *_, **__: AVAILABLE.get(what, what in ("pytest", "datasets") and _is_installed(what))
    return _not_here(name)


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def _not_here(name: str) -> type:
    def refuse(self: Any, *_: Any, **__: Any) -> None:
        raise NotImplementedError(f"the runtime has no {name}")

    return type(name, (), {"__init__": refuse})


class _OnlyTestUtils(MetaPathFinder):
    """Refuses everything of the real package but `test_utils`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.startswith("accelerate.") and not name.startswith("accelerate.test_utils"):
            raise ModuleNotFoundError(f"{name} would come from the real package, which is not what is tested")


if __name__ == "__main__":
    folder = package_folder()
    if folder is None:
        raise SystemExit("accelerate is not installed: pip install accelerate==1.15.0, or set ACCELERATE_WHEEL")
    install(folder)
    importlib.import_module(sys.argv[1]).main()
