"""Steps that a script would not expect, too many on some processes or none at all: told when the pass begins."""

from __future__ import annotations

import warnings

from runtime.data.feeds import Feed
from runtime.data.passes import Purpose


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


def warn_if_all_left_out(feed: Feed, purpose: Purpose, skipped: int) -> None:
    """Say so on the main process if a script leaves out more steps than a pass has: then it has none."""
    planned = feed.steps(purpose, 0)
    if planned is not None and skipped > planned and feed.world.rank == 0:
        warnings.warn(
            f"skip_first_batches(loader, {skipped}) leaves out more steps than the {planned} of a pass: nothing is "
            f"left. Leave out those of the epoch that the run goes on in: {skipped} % len(loader).",
            stacklevel=4,
        )
