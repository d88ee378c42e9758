"""What makes a script parallel is asked to keep the global batch, and its loaders are written down as a whole.

The packages are named in a table and imported by it: `migrate` knows nothing of either.
"""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import Any

from migrate.verify.recorder.batches import Passes


@dataclass(frozen=True, slots=True)
class Package:
    """Where a package keeps what is covered: modules and names."""

    accelerator: tuple[str, str]
    configuration: tuple[str, str]
    loaders: tuple[tuple[str, str], ...]


PACKAGES = {
    "runtime": Package(
        ("runtime.accelerator", "Accelerator"),
        ("runtime.handlers", "DataLoaderConfiguration"),
        (("runtime.data.loader", "Prepared"),),
    ),
    "accelerate": Package(
        ("accelerate.accelerator", "Accelerator"),
        ("accelerate.utils", "DataLoaderConfiguration"),
        (("accelerate.data_loader", "DataLoaderShard"), ("accelerate.data_loader", "DataLoaderDispatcher")),
    ),
}


def watch(name: str, passes: Passes, *, splits: bool) -> None:
    """From now on. A loader that looks ahead would take one batch more than a pass has, were it not covered itself."""
    package = PACKAGES[name]
    for place in package.loaders:
        passes.cover(_found(place))
    if splits:
        _split(_found(package.accelerator), _found(package.configuration))


def _split(accelerator: Any, configuration: Any) -> None:
    run = accelerator.__init__

    @functools.wraps(run)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:  # noqa: N807
        given = options.get("dataloader_config")
        if given is not None:
            given.split_batches = True
        elif "split_batches" not in options:
            options["dataloader_config"] = configuration(split_batches=True)
        if "split_batches" in options:
            options["split_batches"] = True
        run(self, *arguments, **options)

    accelerator.__init__ = __init__


def _found(place: tuple[str, str]) -> Any:
    module, name = place
    return getattr(importlib.import_module(module), name)
