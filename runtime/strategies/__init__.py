"""How models live on the processes of a run."""

from __future__ import annotations

from runtime.strategies.base import Ground, Strategy, is_distributed_tensor, unwrapped
from runtime.world import is_joined

__all__ = ["Ground", "Strategy", "is_distributed_tensor", "strategy_for", "unwrapped"]


def strategy_for(ground: Ground) -> Strategy:
    """One process needs nothing; several hold replicas, or shards where that is asked for.

    One process that the script has put into a group of its own shards its models, too.
    """
    if ground.sharding is not None and (ground.world.size > 1 or is_joined()):
        from runtime.strategies.fsdp import Fsdp  # here, because few runs shard

        return Fsdp(ground)
    if ground.world.size == 1:
        return Strategy(ground)
    from runtime.strategies.ddp import Ddp  # here, because one process needs none of it

    return Ddp(ground)
