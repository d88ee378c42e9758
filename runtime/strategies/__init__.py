"""How models live on the processes of a run."""

from __future__ import annotations

from runtime.strategies.base import Strategy, unwrapped
from runtime.strategies.ddp import Ddp
from runtime.world import World

__all__ = ["Strategy", "strategy_for", "unwrapped"]


def strategy_for(world: World) -> type[Strategy]:
    """One process needs nothing; several hold replicas."""
    return Strategy if world.size == 1 else Ddp
