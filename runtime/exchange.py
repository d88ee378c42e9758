"""What the processes of a run tell each other."""

from __future__ import annotations

from typing import Any

from runtime.data.passes import Passes
from runtime.processes import Processes


class Exchange(Processes):
    """The part of `Accelerator` that joins what the processes have computed.

    What exchanges is imported when something is: one process alone often needs none of it.
    """

    _passes: Passes
    _is_triggered = False

    def gather(self, tensor: Any) -> Any:
        """The tensors of all processes joined in rank order, padding included; the input itself on one process."""
        from runtime import collectives

        return collectives.gather(self._world, tensor)

    def gather_for_metrics(self, input_data: Any, use_gather_object: bool = False) -> Any:
        """What all processes computed in this step, every sample once; see `runtime.metrics`."""
        if self.num_processes == 1:
            return input_data
        from runtime.metrics import gather_for_metrics

        current = self._passes.current
        share = None if current is None else current.share
        return gather_for_metrics(self._world, input_data, share, use_gather_object)

    def reduce(self, tensor: Any, reduction: str = "sum", scale: float = 1.0) -> Any:
        """Tensors and numbers summed ("sum"), averaged ("mean") or as the largest ("max") over the processes,
        and multiplied by `scale`.
        """
        from runtime import collectives

        return collectives.reduce(self._world, tensor, reduction, scale)

    def pad_across_processes(self, tensor: Any, dim: int = 0, pad_index: int = 0, pad_first: bool = False) -> Any:
        """Tensors filled up along `dim` to the largest size of any process."""
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
