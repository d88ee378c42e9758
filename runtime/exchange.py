"""What the processes of a run tell each other."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from runtime.config import Config
from runtime.data.passes import Passes
from runtime.errors import ConfigurationError
from runtime.processes import Processes
from runtime.telling import tell

_AMBIGUOUS = (
    "gather_for_metrics() in a step of two loops that take turns (zip), of whose batches other rows count: it goes by "
    "the loop that went on last, and rows of the other one may be missing or come twice. Gather what is of one loader "
    "in a loop over that loader alone."
)


class Exchange(Processes):
    """The part of `Accelerator` that joins what the processes have computed.

    What exchanges is imported when something is: one process alone often needs none of it.
    """

    _passes: Passes
    config: Config
    device: torch.device
    _is_triggered = False
    _looks_outside = 8  # calls of `gather_for_metrics` in no loop that are still looked at
    _looks_inside = 8  # and those in one

    def gather(self, tensor: Any) -> Any:
        """The tensors of all processes joined in rank order, padding included; the input itself on one process.

        Args:
            tensor: a tensor, or a container of tensors (lists, tuples, mappings, dataclasses, nested), on any device.
                First dimensions may differ between the processes; a tensor without dimensions counts as one row.

        Returns:
            The same container, each tensor with the rows of all processes, (sum of rows, ...) of its own dtype, where
            it was. It carries no gradient.

        Raises:
            CollectiveError: the processes bring different numbers of tensors, dtypes or further dimensions.
            TypeError: objects that are no tensors; `gather_for_metrics` takes them.
        """
        from runtime import collectives

        return collectives.gather(self._world, tensor)

    def gather_for_metrics(self, input_data: Any, use_gather_object: bool = False) -> Any:
        """What all processes computed in this step, every sample once, in the order of the loader.

        Rows that were only added so that every process has some are left out, wherever in a loop over a prepared loader
        this is called; outside of one nothing is.

        Args:
            input_data: tensors as for `gather`, or other objects, which are pickled.
            use_gather_object: tensors as objects, too: one list.

        Returns:
            Tensors as of `gather`, and an array of NumPy in the same way; of other objects one list, in which lists are
            joined.

        Raises:
            CollectiveError: tensors and other objects in one container, or shapes that cannot be joined.
        """
        current = self._passes.current
        share = None if current is None else current.share
        if self.num_processes == 1 and share is None:
            return input_data
        from runtime.metrics import gather_for_metrics, told_of_samples, told_outside

        if current is not None and current.is_ambiguous and self.is_main_process:
            tell(_AMBIGUOUS)
        if share is not None and self._looks_inside and self.use_distributed and not use_gather_object:
            told = told_of_samples(input_data, share.rows[self.process_index])
            self._looks_inside = self._looks_left(self._looks_inside, told)
        result = gather_for_metrics(self._world, input_data, share, use_gather_object)
        if current is None and self._looks_outside:
            told = told_outside(input_data, result, self.num_processes, self._passes.last)
            self._looks_outside = self._looks_left(self._looks_outside, told)
        return result

    def _looks_left(self, looks: int, told: str | None) -> int:
        """How often is still looked for a mistake, of which nothing was found, or this; it is told once."""
        if told is None:
            return looks - 1
        if self.is_main_process:
            tell(told)
        return 0

    @property
    def batch_mask(self) -> Tensor:
        """Which rows of the current batch count, with `DataLoaderConfiguration(pad_batches=True)`: (rows,), bool.

        `(losses * mask).sum() / mask.sum().clamp(min=1)`, with a loss for each row, is the mean over those that count.

        Raises:
            ConfigurationError: without that option, or outside of a loop over a prepared loader.
        """
        current = self._passes.current
        if not self.config.pad_batches or current is None or current.share is None:
            raise ConfigurationError(
                "batch_mask says which rows of the current batch count: ask for it in a loop over a prepared loader, "
                "with Accelerator(dataloader_config=DataLoaderConfiguration(pad_batches=True))."
            )
        from runtime.data.filling import row_mask

        return row_mask(current.share, self._world.rank, self.device)

    def reduce(self, tensor: Any, reduction: str = "sum", scale: float = 1.0) -> Any:
        """Tensors and numbers as their sum, mean or largest over the processes, times `scale`.

        Args:
            tensor: a tensor, a number of Python or NumPy, or a container of these; shapes are the same everywhere.
            reduction: "sum", "mean", "max", or "none": each process keeps its own.

        Returns:
            New values in the same container. Numbers keep their type, but the mean of whole ones over several
            processes; a sum or mean hands its gradient to the process's own summand.

        Raises:
            ConfigurationError: another `reduction`.
            CollectiveError: the processes bring different numbers of tensors, dtypes or shapes (on the CPU, or in debug
                mode).
        """
        from runtime import collectives

        return collectives.reduce(self._world, tensor, reduction, scale)

    def pad_across_processes(self, tensor: Any, dim: int = 0, pad_index: float = 0, pad_first: bool = False) -> Any:
        """Tensors filled up with `pad_index` along `dim` to the largest size of any process, so `gather` joins them.

        Args:
            pad_first: what is filled up comes before the values.

        Returns:
            The container with tensors of one size along `dim`; those that have no such dimension as they are.

        Raises:
            CollectiveError: the processes bring tensors of different numbers of dimensions.
        """
        from runtime import collectives

        return collectives.pad_across_processes(self._world, tensor, dim, pad_index, pad_first)

    def set_trigger(self) -> None:
        """Have the next `check_trigger` say True, on every process."""
        self._is_triggered = True

    def check_trigger(self) -> bool:
        """Whether any process has called `set_trigger` since the last check; every process must call this."""
        from runtime import collectives

        mine, self._is_triggered = self._is_triggered, False
        return any(collectives.all_flags(self._world, mine, "check_trigger"))
