"""The interface of a tracker: names and meaning are Accelerate's, so a script's own tracker serves both."""

from __future__ import annotations

import functools
import json
import math
import os
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from runtime.tree import map_leaves
from runtime.world import World

R = TypeVar("R")
REQUIRED = ("name", "requires_logging_directory", "tracker")


class GeneralTracker:
    """What writes the numbers of a run somewhere. A subclass gives `name`, `requires_logging_directory` and `tracker`.

    The accelerator makes the trackers that were asked for by name as `Kind(project_name, **init_kwargs)`, those with
    `requires_logging_directory` as `Kind(project_name, logging_dir, **init_kwargs)`. It calls them on the main process;
    one whose `main_process_only` is False on every process.

    Raises:
        NotImplementedError: the class lacks one of the three.
    """

    name: str
    requires_logging_directory: bool
    main_process_only: bool = True
    packages: ClassVar[tuple[str, ...]] = ()
    """The packages that it can work with, any one of them."""

    if TYPE_CHECKING:

        @property
        def tracker(self) -> Any:
            """What is behind: a writer, a run."""

    def __init__(self, _blank: bool = False) -> None:
        missing = [] if _blank else [name for name in REQUIRED if name not in dir(self)]
        if missing:
            raise NotImplementedError(
                f"{type(self).__name__} lacks {', '.join(missing)}. A tracker class defines them."
            )

    def start(self) -> None:
        """Open what is behind; called once by `init_trackers`."""

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Keep the settings of the run."""

    def log(self, values: dict[str, Any], step: int | None = None, **options: Any) -> None:
        """Keep values of one moment of the run."""

    def finish(self) -> None:
        """Close what is behind; called once by `end_training`."""


class Silent(GeneralTracker):
    """Stands for a tracker on processes that do not write: every method is there and does nothing."""

    requires_logging_directory = False

    def __init__(self, name: str) -> None:
        super().__init__(_blank=True)
        self.name = name

    @property
    def tracker(self) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self


def on_main_process(method: Callable[..., R]) -> Callable[..., R | None]:
    """A decorator for methods of trackers: they run on the main process, or on all if `main_process_only` is False."""

    @functools.wraps(method)
    def guarded(self: Any, *arguments: Any, **options: Any) -> R | None:
        if getattr(self, "main_process_only", False) and World.from_environment(os.environ).rank:
            return None
        return method(self, *arguments, **options)

    return guarded


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """`values` with tensors and arrays as numbers, or as lists of numbers where they have more than one element.

    Names are texts, as those of all trackers are.
    """
    return {str(name): map_leaves(number, value) for name, value in values.items()}


def number(leaf: Any) -> Any:
    """A tensor or array as a number, or as lists of numbers; anything else as it is."""
    if not callable(getattr(leaf, "tolist", None)):
        return leaf
    data = leaf.tolist()
    while isinstance(data, list) and len(data) == 1:
        data = data[0]
    return data


def in_json(value: Any, indent: int | None = None) -> str:
    """JSON as its standard has it, which knows no NaN and no infinity; names, and what it does not know, are texts."""
    return json.dumps(_in_words(value), indent=indent, default=str, allow_nan=False)


def _in_words(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key if isinstance(key, _NAMES) else str(key): _in_words(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_in_words(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


_NAMES = (str, int, bool, type(None))  # of which JSON makes texts itself


class Omissions:
    """What a tracker could not write: each key is told once."""

    def __init__(self, tracker: str) -> None:
        self._tracker = tracker
        self._told: set[str] = set()

    def tell(self, key: str, reason: str) -> None:
        """Warn that the value of `key` is left out."""
        if key not in self._told:
            self._told.add(key)
            warnings.warn(f"{self._tracker} leaves out {key!r}: {reason}", stacklevel=4)
