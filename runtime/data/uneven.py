"""Processes that would take different numbers of training steps: told when the pass begins."""

from __future__ import annotations

import warnings

from runtime.data.feeds import Feed


def warn_if_uneven(feed: Feed, since: int) -> None:
    """Say once, on the main process, how many steps each process takes, if they are not the same.

    A step that only some take waits for gradients of the others; that wait is found and ended.
    """
    counts = feed.counts(since)
    if len(set(counts)) > 1 and feed.world.rank == 0:
        told = ", ".join(f"rank {rank}: {count}" for rank, count in enumerate(counts))
        warnings.warn(
            f"the processes take different numbers of training steps ({told}), and gradients are averaged in each: "
            "the last ones will wait for processes that are done. Use even_batches=True, leave sharing out to "
            "prepare(), or break after the smallest number.",
            stacklevel=4,
        )
