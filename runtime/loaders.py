"""What a script asks of loaders that were prepared."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader

from runtime.processes import Processes


class Loaders(Processes):
    """The part of `Accelerator` that is about loaders, beside preparing them."""

    def skip_first_batches(self, dataloader: DataLoader[Any], num_batches: int = 0) -> DataLoader[Any]:
        """A loader that leaves out the first `num_batches` steps; see `runtime.skip_first_batches`."""
        from runtime.data.loader import skip_first_batches

        return skip_first_batches(dataloader, num_batches)
