"""Which trackers a script asks for: by name, as a class, as an object of its own, or all that are there."""

from __future__ import annotations

import os
import sys
import warnings
from enum import Enum
from importlib.util import find_spec
from typing import Any

from runtime.errors import ConfigurationError, UnsupportedArgument
from runtime.tracking.base import REQUIRED, GeneralTracker
from runtime.tracking.files import CSVTracker, JSONLTracker
from runtime.tracking.mlflow import MLflowTracker
from runtime.tracking.tensorboard import TensorBoardTracker
from runtime.tracking.wandb import WandBTracker

Tracker = GeneralTracker | type[GeneralTracker]


class LoggerType(str, Enum):
    """The trackers that have a name."""

    ALL = "all"
    TENSORBOARD = "tensorboard"
    WANDB = "wandb"
    MLFLOW = "mlflow"
    CSV = "csv"
    JSONL = "jsonl"

    def __str__(self) -> str:
        return self.value


TRACKERS: dict[str, type[GeneralTracker]] = {
    kind.name: kind for kind in (TensorBoardTracker, WandBTracker, MLflowTracker, CSVTracker, JSONLTracker)
}
ELSEWHERE = ("aim", "clearml", "comet_ml", "dvclive", "swanlab", "trackio")  # names that Accelerate knows


def chosen(log_with: Any, logging_dir: str | os.PathLike[str] | None, *, is_telling: bool = True) -> list[Tracker]:
    """The trackers that `log_with` asks for, each once.

    A tracker whose package is not installed is left out with a warning (if `is_telling`). "all" takes every one whose
    package is there, and those that need a folder only if there is one.

    Raises:
        ConfigurationError: a name that nobody knows, an object that is no tracker, or a tracker that needs a folder
            where none was given; `UnsupportedArgument` for names that only Accelerate has.
    """
    asked = [] if log_with is None else list(log_with) if isinstance(log_with, (list, tuple)) else [log_with]
    result: list[Tracker] = []
    for item in asked:
        found = _all(logging_dir) if item == LoggerType.ALL else [_one(item, logging_dir)]
        result.extend(tracker for tracker in found if tracker not in result)
    absent = [tracker for tracker in result if not is_there(tracker)]
    for tracker in absent if is_telling else ():
        warnings.warn(
            f"log_with={tracker.name!r} is left out: {' or '.join(tracker.packages)} is not installed. "
            f"Run: pip install {tracker.packages[0]}",
            stacklevel=4,
        )
    return [tracker for tracker in result if tracker not in absent]


def is_there(tracker: Tracker) -> bool:
    """Whether a package that the tracker works with is installed; nothing is imported."""
    packages = getattr(tracker, "packages", ())
    return not packages or any(sys.modules.get(name) is not None or find_spec(name) is not None for name in packages)


def _all(logging_dir: str | os.PathLike[str] | None) -> list[Tracker]:
    kinds = TRACKERS.values()
    return [kind for kind in kinds if is_there(kind) and (logging_dir or not kind.requires_logging_directory)]


def _one(item: Any, logging_dir: str | os.PathLike[str] | None) -> Tracker:
    tracker = _named(str(getattr(item, "value", item))) if isinstance(item, (str, Enum)) else item
    is_kind = isinstance(tracker, type) and issubclass(tracker, GeneralTracker)
    if not (is_kind or isinstance(tracker, GeneralTracker)):
        raise ConfigurationError(
            f"log_with={item!r} is no tracker. Give a name ({', '.join(TRACKERS)}) or derive from GeneralTracker."
        )
    missing = [name for name in REQUIRED if name not in dir(tracker)]
    if missing:
        raise ConfigurationError(f"log_with={item!r} lacks {', '.join(missing)}. A tracker class defines them.")
    if is_kind and tracker.requires_logging_directory and logging_dir is None:
        raise ConfigurationError(
            f"log_with={tracker.name!r} needs a folder. "
            "Pass Accelerator(project_dir=...) or ProjectConfiguration(logging_dir=...)."
        )
    return tracker


def _named(name: str) -> type[GeneralTracker]:
    if name in ELSEWHERE:
        raise UnsupportedArgument(
            f"Accelerator(log_with={name!r})",
            f"Choose one of {', '.join(TRACKERS)}, or pass a GeneralTracker of your own that calls {name}.",
        )
    if name not in TRACKERS:
        raise ConfigurationError(f"log_with={name!r} is not known. Known: {', '.join(['all', *TRACKERS])}.")
    return TRACKERS[name]
