"""Progress bars of which only one is seen."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from runtime.errors import ConfigurationError
from runtime.world import World


def tqdm(*args: Any, main_process_only: bool = True, **kwargs: Any) -> Any:
    """`tqdm.auto.tqdm`, shown by one process of each machine; on the others it only iterates.

    Args:
        main_process_only: False shows a bar for each process.

    Raises:
        ImportError: tqdm is not installed.
        ConfigurationError: the first argument is a bool, as an early interface of Accelerate had it.
    """
    if args and isinstance(args[0], bool):
        raise ConfigurationError(
            f"tqdm({args[0]}, ...): what is iterated comes first. Write main_process_only={args[0]}."
        )
    try:
        bar = import_module("tqdm.auto").tqdm
    except ImportError as error:
        raise ImportError("runtime.tqdm needs the package tqdm. Run: pip install tqdm") from error
    if main_process_only and World.from_environment(os.environ).local_rank:
        kwargs["disable"] = True
    return bar(*args, **kwargs)
