"""XLA devices through torch_xla: one process that has all chips and shares each batch out over them (SPMD).

Computations are only written down until a step is ended, and compiled for every shape anew. Several processes are
refused: on XLA's CPU client (torch_xla 2.9) an all_reduce of two processes returns each its own value, without a word.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch

from runtime.config import OFF, DistributedType
from runtime.devices.base import Device
from runtime.errors import WorldError
from runtime.hardware import tpu_chips
from runtime.kinds import XLA
from runtime.tree import map_leaves

_STATE = "xm_seed"


class Xla(Device):
    """All chips of this machine as one device; where there are several, the rows of a batch lie on all of them."""

    kind = XLA
    backend = "xla"  # so that it is chosen, and can refuse, where there are several processes
    distributed_type = distributed_type_alone = DistributedType.XLA
    moves_in_place = False
    is_portable = False
    compiler = "openxla"

    @classmethod
    def is_available(cls) -> bool:
        """torch_xla is installed, and PJRT_DEVICE names a device or there is a TPU; not with USE_TORCH_XLA=0."""
        is_wanted = os.environ.get("USE_TORCH_XLA", "1").lower() not in OFF
        return is_wanted and importlib.util.find_spec("torch_xla") is not None and _is_there()

    def own(self, local_rank: int, world_size: int) -> torch.device:
        if world_size > 1:
            raise WorldError(
                f"{world_size} processes were started, and torch_xla has all chips of a machine in one: several would "
                "train apart, each on sums of its own. Start one process (--num_processes 1), which shares each batch "
                "out over the chips, or use torch_tpu, which has a process for every chip."
            )
        return self._xla.device

    @cached_property
    def _xla(self) -> _Started:
        return _started()

    @property
    def end_step(self) -> Callable[[], None]:
        return self._xla.end_step

    @property
    def spread(self) -> Callable[[Any], Any]:
        return self._xla.spread

    def synchronize(self) -> None:
        self._xla.synchronize()

    def seed(self, seed: int) -> None:
        self._xla.seed(seed)

    def random_states(self) -> dict[str, Any]:
        return {_STATE: self._xla.random_state()}

    def set_random_states(self, states: dict[str, Any]) -> None:
        if _STATE in states:
            self._xla.seed(states[_STATE])

    def random_state(self) -> torch.Tensor:
        return torch.tensor(self._xla.random_state())

    def set_random_state(self, state: torch.Tensor) -> None:
        self._xla.seed(int(state))


def _is_there() -> bool:
    return bool(os.environ.get("PJRT_DEVICE")) or tpu_chips() > 0


class _Started:
    """torch_xla, its client started. Made once, before any backward: the autograd engine counts devices only once."""

    def __init__(self) -> None:
        import torch_xla  # type: ignore[import-not-found]  # an environment of its own
        import torch_xla.core.xla_model as model  # type: ignore[import-not-found]
        from torch_xla import runtime
        from torch_xla.distributed import spmd  # type: ignore[import-not-found]

        self._torch_xla, self._model, self._spmd = torch_xla, model, spmd
        chips = runtime.global_runtime_device_count()
        if chips > 1:
            runtime.use_spmd()  # before the first tensor
        self.device: torch.device = torch_xla.device()
        self._chips = chips
        self._mesh = spmd.Mesh(list(range(chips)), (chips,), ("data",)) if chips > 1 else None

    def end_step(self) -> None:
        self._torch_xla.sync()

    def synchronize(self) -> None:
        self._torch_xla.sync(wait=True)

    def spread(self, batch: Any) -> Any:
        """The batch with its rows over all chips, where they can be shared out evenly; else each has all of them.

        The step before ends here, too: a loop without an optimizer would be written down to its end.
        """
        self.end_step()
        return batch if self._mesh is None else map_leaves(self._shared_out, batch)

    def _shared_out(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.ndim and leaf.shape[0] and leaf.shape[0] % self._chips == 0:
            self._spmd.mark_sharding(leaf, self._mesh, ("data",) + (None,) * (leaf.ndim - 1))
        return leaf

    def seed(self, seed: int) -> None:
        self._model.set_rng_state(seed)

    def random_state(self) -> int:
        return int(self._model.get_rng_state())


_running: list[_Started] = []


def _started() -> _Started:
    if not _running:
        _running.append(_Started())
    return _running[0]
