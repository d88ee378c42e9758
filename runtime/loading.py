"""`prepare_data_loader` for scripts that prepare a loader without `Accelerator.prepare`."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader

from runtime.accumulation import Accumulation
from runtime.data.feeds import Dealing
from runtime.data.loader import prepared_loader
from runtime.data.passes import Passes
from runtime.data.seeded import seeded
from runtime.devices import kind_of
from runtime.errors import ConfigurationError, UnsupportedArgument
from runtime.state import current, joined_world


def prepare_data_loader(
    dataloader: DataLoader[Any],
    device: torch.device | None = None,
    num_processes: int | None = None,
    process_index: int | None = None,
    split_batches: bool = False,
    put_on_device: bool = False,
    rng_types: Any = None,
    dispatch_batches: bool | None = None,
    even_batches: bool = True,
    slice_fn_for_dispatch: Any = None,
    use_seedable_sampler: bool = False,
    data_seed: int | None = None,
    non_blocking: bool = False,
    use_stateful_dataloader: bool = False,
) -> DataLoader[Any]:
    """What `Accelerator.prepare_data_loader` gives, with settings of its own; see `runtime.data.loader`.

    Args:
        device: where batches are put, if `put_on_device`; None: the device of the accelerator.
        num_processes: those of this run; another number is an error.
        process_index: that of this process; another one is an error.
        use_stateful_dataloader: changes nothing, every prepared loader can save its place.

    Raises:
        ConfigurationError: the processes are not those of this run.
        UnsupportedArgument: what only Accelerate has.
    """
    world, owner = joined_world(), current()
    if num_processes not in (None, world.size) or process_index not in (None, world.rank):
        raise ConfigurationError(
            f"prepare_data_loader(num_processes={num_processes}, process_index={process_index}): this is process "
            f"{world.rank} of {world.size}. Leave both out."
        )
    for name, value, way_out in (
        ("rng_types", rng_types, "The order of samples is agreed on: leave it out."),
        ("slice_fn_for_dispatch", slice_fn_for_dispatch, "Leave it out."),
    ):
        if value:
            raise UnsupportedArgument(f"prepare_data_loader({name}=...)", way_out)
    passes = Passes(world.rank) if owner is None else owner._passes  # noqa: SLF001  its own function
    accumulation = Accumulation(1, passes) if owner is None else owner._accumulation  # noqa: SLF001  as above
    where = device or (torch.device("cpu") if owner is None else owner.device)
    del use_stateful_dataloader
    return prepared_loader(
        seeded(dataloader, data_seed) if use_seedable_sampler else dataloader,
        world=world,
        passes=passes,
        accumulation=accumulation,
        dealing=Dealing(split_batches, even_batches, bool(dispatch_batches)),
        device=where if put_on_device and kind_of(where).needs_copies else None,
        non_blocking=non_blocking,
    )
