"""What a script asks about the processes it is one of, and how it makes them wait or speak."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from runtime.world import World

P = ParamSpec("P")
R = TypeVar("R")


class Processes:
    """The part of `Accelerator` that knows the world and nothing of models and data."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.num_processes = world.size
        self.process_index = world.rank
        self.local_process_index = world.local_rank
        self.is_main_process = world.rank == 0
        self.is_local_main_process = world.local_rank == 0
        self.is_last_process = world.rank == world.size - 1
        self.use_distributed = world.size > 1

    def wait_for_everyone(self) -> None:
        """Return when every process has called this."""
        if self.use_distributed:
            from runtime.collectives import barrier

            barrier(self._world)

    def print(self, *values: Any, **options: Any) -> None:
        """`print`, once per machine."""
        if self.is_local_main_process:
            print(*values, **options)  # noqa: T201  what it is for

    def on_main_process(self, function: Callable[P, R]) -> Callable[P, R | None]:
        """A decorator: the function runs on the main process and returns None on the others."""
        return _only_if(self.is_main_process, function)

    def on_local_main_process(self, function: Callable[P, R]) -> Callable[P, R | None]:
        """A decorator: the function runs on one process of each machine and returns None on the others."""
        return _only_if(self.is_local_main_process, function)

    def on_last_process(self, function: Callable[P, R]) -> Callable[P, R | None]:
        """A decorator: the function runs on the last process and returns None on the others."""
        return _only_if(self.is_last_process, function)

    def on_process(
        self, function: Callable[P, R] | None = None, process_index: int | None = None
    ) -> Callable[P, R | None] | Callable[[Callable[P, R]], Callable[P, R | None]]:
        """A decorator: the function runs on one process and returns None on the others; also `on_process(...)(f)`.

        A process that is the only one runs it, whatever the number says.
        """
        return _decorator(not self.use_distributed or process_index == self.process_index, function)

    def on_local_process(
        self, function: Callable[P, R] | None = None, local_process_index: int | None = None
    ) -> Callable[P, R | None] | Callable[[Callable[P, R]], Callable[P, R | None]]:
        """A decorator: the function runs on one process of each machine and returns None on the others.

        A process that is the only one of all runs it, whatever the number says.
        """
        return _decorator(not self.use_distributed or local_process_index == self.local_process_index, function)

    @contextmanager
    def split_between_processes(self, inputs: Any, apply_padding: bool = False) -> Iterator[Any]:
        """This process's part of a list, tuple, tensor, array, data set, or dictionary of these.

        The parts are contiguous and in order; the first processes have one more where they cannot be equal.

        Args:
            apply_padding: repeat the last element of the whole until all parts are equally long.

        Raises:
            ConfigurationError: the values of a dictionary differ in length.
            TypeError: the input cannot be cut, or its last element not be repeated.
        """
        from runtime.split import split

        yield split(inputs, self.process_index, self.num_processes, apply_padding)

    @contextmanager
    def main_process_first(self) -> Iterator[None]:
        """The main process goes through the body first, then the others; also if it raises there."""
        with self._first(self.is_main_process):
            yield

    @contextmanager
    def local_main_process_first(self) -> Iterator[None]:
        """One process of each machine goes through the body first, then the others; also if it raises there."""
        with self._first(self.is_local_main_process):
            yield

    @contextmanager
    def _first(self, is_first: bool) -> Iterator[None]:
        if not is_first:
            self.wait_for_everyone()
        try:
            yield
        finally:
            if is_first:
                self.wait_for_everyone()


def _decorator(
    condition: bool, function: Callable[P, R] | None
) -> Callable[P, R | None] | Callable[[Callable[P, R]], Callable[P, R | None]]:
    if function is None:
        return lambda later: _only_if(condition, later)
    return _only_if(condition, function)


def _only_if(condition: bool, function: Callable[P, R]) -> Callable[P, R | None]:
    @functools.wraps(function)
    def guarded(*arguments: P.args, **options: P.kwargs) -> R | None:
        return function(*arguments, **options) if condition else None

    return guarded
