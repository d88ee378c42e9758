"""Every process holds a part of the parameters, gradients and optimizer states (PyTorch's FSDP2, `fully_shard`).

`fully_shard` works in place: the model keeps its identity, its keys and its class (as a subclass), and its parameters
become distributed tensors. PyTorch's modules are imported where they are used, since they cost half a second.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakSet, finalize, ref

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.weak import WeakIdKeyDictionary

from runtime.collectives import broadcast_tensors
from runtime.config import DistributedType
from runtime.errors import ConfigurationError, PrepareError, UnsupportedArgument
from runtime.messages import BUFFERS
from runtime.sharding import Sharding
from runtime.strategies import shards
from runtime.strategies.base import Ground, Strategy, has_distributed_tensors, is_distributed_tensor, unwrapped
from runtime.strategies.gradients import average_gradients
from runtime.strategies.statistics import with_joined_statistics
from runtime.strategies.units import units

LARGEST_MESSAGE = 1 << 26  # bytes of parameters that are sent together at the start


class Fsdp(Strategy):
    """Shards of models, over all processes or over the processes of a group (HSDP)."""

    places_models: ClassVar[bool] = True

    def __init__(self, ground: Ground) -> None:
        super().__init__(ground)
        assert ground.sharding is not None
        self._sharding: Sharding = ground.sharding
        self._kept_whole: WeakKeyDictionary[nn.Module, list[nn.Parameter]] = WeakKeyDictionary()
        self._held_back: set[int] = set()  # models in a micro-step that does not exchange gradients
        self._put: WeakIdKeyDictionary = WeakIdKeyDictionary()  # what a parameter was → what stands in its place
        self._stepping: WeakSet[Optimizer] = WeakSet()  # optimizers that hold what is there now
        _refuse_emptied_in(self)
        _refuse_without_events(ground.own)

    @property
    def distributed_type(self) -> DistributedType:
        return DistributedType.FSDP

    @cached_property
    def _mesh(self) -> Any:
        """The processes as FSDP2 wants them: one dimension, or replicas times shards."""
        from torch.distributed.device_mesh import init_device_mesh

        arrangement, world = self._sharding.arrangement, self._world
        replicate, shard = arrangement.sizes(world.size)
        if self._sharding.is_hybrid and arrangement.shard is None and world.size % world.local_size == 0:
            replicate, shard = world.size // world.local_size, world.local_size
        kind = self._ground.device.current().type  # which opens a GPU: a mesh would warn, and choose one by the rank
        if replicate == 1:
            return init_device_mesh(kind, (shard,), mesh_dim_names=("dp_shard",))
        return init_device_mesh(kind, (replicate, shard), mesh_dim_names=("dp_replicate", "dp_shard"))

    # wrapping

    def wrap(self, model: nn.Module) -> nn.Module:
        inner = unwrapped(model, keep_torch_compile=False)
        if has_distributed_tensors(inner):
            return model
        if not self._ground.device.joins_statistics:
            with_joined_statistics(inner)
        ignored = self._ignored(inner)
        chosen = units(inner, self._sharding, ignored)
        before = dict(inner.named_parameters(remove_duplicate=False))
        if self._sharding.activation_checkpointing:
            for unit in chosen or [inner]:
                _compute_again(unit)
        self._shard(inner, chosen, ignored)
        self._stepping.clear()
        after = dict(inner.named_parameters(remove_duplicate=False))
        for name, old in before.items():
            if old is not after[name]:
                self._put[old] = after[name]
                _empty(old)
        if any(True for _ in inner.buffers()) and self._ground.replicas.broadcast_buffers:
            inner.register_forward_hook(self._send_buffers)
        return model

    def _shard(self, model: nn.Module, chosen: list[nn.Module], ignored: list[nn.Module]) -> None:
        """Shard the units and then the rest, each after the main process's values have come to all."""
        from torch.distributed.fsdp import fully_shard

        arguments: dict[str, Any] = {
            "mesh": self._mesh,
            "reshard_after_forward": self._sharding.reshard_after_forward,
        }
        left_out = {id(p) for layer in ignored for p in layer.parameters()}
        # fully_shard takes no scalars
        kept_whole = [p for p in model.parameters() if id(p) in left_out or p.ndim == 0]
        if kept_whole:
            if "ignored_params" not in inspect.signature(fully_shard).parameters:
                raise UnsupportedArgument("ignored_modules, and scalar parameters,", "Use torch 2.7 or newer.")
            arguments["ignored_params"] = set(kept_whole)
            self._kept_whole[model] = kept_whole
        if self._sharding.cpu_offload:
            from torch.distributed.fsdp import CPUOffloadPolicy

            arguments["offload_policy"] = CPUOffloadPolicy(pin_memory=self._ground.device.pins)
        replaced: dict[int, nn.Parameter] = {}
        for unit in [*chosen, model]:
            self._start_equal(unit, replaced)
            fully_shard(unit, mp_policy=self._policy(unit), **arguments)
        for unit in chosen:
            unit.register_forward_pre_hook(_Recomputed())
        self._ground.device.put(kept_whole, self._ground.own)

    def _start_equal(self, unit: nn.Module, replaced: dict[int, nn.Parameter]) -> None:
        """The main process's values in all that is not sharded yet; the others may have none (the meta device)."""
        for layer in unit.modules():
            for table in (layer._parameters, layer._buffers):  # noqa: SLF001  tied parameters must stay one object
                for name, value in table.items():
                    if value is None or not value.is_meta:
                        continue
                    if self._world.rank == 0:
                        raise PrepareError(
                            f"{name} of a {type(layer).__name__} is on the meta device on the main process, which "
                            "sends its values to all. Load the weights there before prepare."
                        )
                    made = torch.empty_like(value, device=self._ground.own)
                    if isinstance(value, nn.Parameter):
                        made = replaced.setdefault(id(value), nn.Parameter(made, value.requires_grad))
                    table[name] = made  # type: ignore[assignment]
        plain = [t for t in (*unit.parameters(), *unit.buffers()) if not is_distributed_tensor(t)]
        for message in _messages([t.data for t in plain]):
            broadcast_tensors(self._world, message)
        if not self._ground.device.moves_in_place:  # else fully_shard does
            self._ground.device.put(plain, self._ground.own)

    def _ignored(self, model: nn.Module) -> list[nn.Module]:
        said = self._sharding.ignored
        if isinstance(said, str):
            return [layer for name, layer in model.named_modules() if name and re.fullmatch(said, name)]
        inside = set(map(id, model.modules()))
        return [layer for layer in said or () if id(layer) in inside]

    def _policy(self, unit: nn.Module) -> Any:
        """The number formats of one unit; parameters stay in float32, and so do layers with batch statistics."""
        from torch.distributed.fsdp import MixedPrecisionPolicy

        said = self._sharding.precision
        if isinstance(said, MixedPrecisionPolicy):
            return said
        dtypes = _dtypes(said, self._ground.dtype)
        has_statistics = any(isinstance(m, _NormBase) and not has_distributed_tensors(m) for m in unit.modules())
        if dtypes["param_dtype"] is None or (said is None and has_statistics):
            return MixedPrecisionPolicy()
        return MixedPrecisionPolicy(**dtypes)

    def _send_buffers(self, model: nn.Module, inputs: Any, output: Any) -> None:
        if torch.is_grad_enabled() and model.training:
            broadcast_tensors(self._world, [buffer.data for buffer in model.buffers()], call=BUFFERS)

    # training

    def rebind(self, optimizer: Optimizer) -> None:
        for group in optimizer.param_groups:
            own = group["params"]
            own[:] = [self._now(parameter) for parameter in own]  # in place: LBFGS holds the list
        for old in [parameter for parameter in optimizer.state if parameter in self._put]:
            new = self._put[old]
            state = optimizer.state.pop(old)
            optimizer.state[new] = {name: shards.own_part(value, new) for name, value in state.items()}

    def refuse_emptied(self, optimizer: Optimizer) -> None:
        """Raise where an optimizer steps that holds what was sharded, and was not prepared: it would train nothing."""
        if optimizer in self._stepping:
            return
        if any(parameter in self._put for group in optimizer.param_groups for parameter in group["params"]):
            raise PrepareError(
                f"this {type(optimizer).__name__} was not prepared: its parameters are empty, since FSDP2 has put "
                "shards in their place. Pass it to prepare, too: model, optimizer = prepare(model, optimizer)."
            )
        self._stepping.add(optimizer)

    def _now(self, parameter: Tensor) -> Any:
        return self._put[parameter] if parameter in self._put else parameter  # noqa: SIM401  its get() has no types

    def average(self, models: Iterable[nn.Module]) -> None:
        for model in models:
            inner = unwrapped(model, keep_torch_compile=False)
            own = self._kept_whole.get(inner)
            if own and id(inner) not in self._held_back:
                average_gradients(self._world, own)

    @contextmanager
    def no_sync(self, model: nn.Module) -> Iterator[None]:
        inner: Any = unwrapped(model, keep_torch_compile=False)
        if id(inner) in self._held_back or not hasattr(inner, "set_requires_gradient_sync"):
            yield
            return
        self._held_back.add(id(inner))
        inner.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self._held_back.discard(id(inner))
            inner.set_requires_gradient_sync(True)

    def clip_grad_norm_(self, parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float) -> Tensor:
        return shards.clip_grad_norm_(parameters, max_norm, norm_type)

    # files

    def state_dict(self, model: nn.Module) -> dict[str, Any]:
        return shards.gathered(self._world, super().state_dict(model))

    def load_state_dict(self, model: nn.Module, state: dict[str, Any], **options: Any) -> None:
        inner = unwrapped(model, keep_torch_compile=False)
        if has_distributed_tensors(inner):
            own = inner.state_dict()
            state = shards.dealt(self._world, state, lambda path: own.get(path[0]))
        inner.load_state_dict(state, **options)

    def optimizer_state(self, optimizer: Optimizer) -> dict[str, Any]:
        return shards.gathered(self._world, optimizer.state_dict())

    def load_optimizer_state(self, optimizer: Optimizer, state: dict[str, Any]) -> None:
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]

        def like(path: tuple[Any, ...]) -> Any:
            return parameters[path[1]] if path[0] == "state" and path[1] < len(parameters) else None

        optimizer.load_state_dict(shards.dealt(self._world, state, like))


def _compute_again(unit: nn.Module) -> None:
    """Let a unit keep only its inputs for backward, which computes the rest again (activation checkpointing)."""
    from torch.utils.checkpoint import checkpoint

    unit.forward = partial(checkpoint, unit.forward, use_reentrant=False)


class _Recomputed:
    """Stops a backward whose gradients PyTorch would get wrong: a unit that a reentrant checkpoint computes twice."""

    def __init__(self) -> None:
        self._times = 0

    def __call__(self, unit: nn.Module, inputs: Any) -> None:
        if torch._C._current_graph_task_id() == -1:  # noqa: SLF001  not in a backward; there is no public name
            self._times = 0
        elif _is_in_reentrant_checkpoint():
            self._times += 1
            if self._times > 1:
                raise PrepareError(
                    f"a {type(unit).__name__} is computed twice in one backward by torch.utils.checkpoint with "
                    "use_reentrant=True, and PyTorch loses gradients of sharded layers there. "
                    "Pass use_reentrant=False to checkpoint()."
                )


def _is_in_reentrant_checkpoint() -> bool:
    from torch.utils.checkpoint import CheckpointFunction

    code, frame = CheckpointFunction.backward.__code__, inspect.currentframe()
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


def _empty(parameter: nn.Parameter) -> None:
    """Give the memory of a parameter back that has been replaced, whoever still holds the object."""
    parameter.data = torch.empty(0, dtype=parameter.dtype, device=parameter.device)


def _messages(tensors: list[Tensor]) -> Iterator[list[Tensor]]:
    """The tensors in groups of at most LARGEST_MESSAGE bytes, each of which is copied once more to be sent."""
    group: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if group and size + tensor.nbytes > LARGEST_MESSAGE:
            yield group
            group, size = [], 0
        group.append(tensor)
        size += tensor.nbytes
    if group:
        yield group


NAMED = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": None, "no": None}


def _dtypes(said: Any, own: torch.dtype | None) -> dict[str, Any]:
    """What parameters are gathered in, and what gradients are summed in: float32, unless a script says otherwise."""
    if said is None:
        return {"param_dtype": own, "reduce_dtype": torch.float32}
    if isinstance(said, str):
        if said not in NAMED:
            raise ConfigurationError(f"mixed_precision_policy={said!r} is not known. Known: {', '.join(NAMED)}.")
        return {"param_dtype": NAMED[said], "reduce_dtype": torch.float32}
    names = ("param_dtype", "reduce_dtype", "output_dtype", "cast_forward_inputs")
    given = said if isinstance(said, dict) else {name: getattr(said, name, None) for name in names[:2]}
    unknown = [name for name in given if name not in (*names, "buffer_dtype")]
    if unknown:
        raise ConfigurationError(f"mixed_precision_policy has {', '.join(unknown)}. Known: {', '.join(names)}.")
    return {name: given[name] for name in names if given.get(name) is not None} | {
        "param_dtype": given.get("param_dtype")
    }


def _refuse_without_events(device: torch.device) -> None:
    """FSDP2 marks what it sends with events of the device's streams; the CPU's have them from torch 2.7 on.

    Raises:
        ConfigurationError: this torch has none for the device.
    """
    stream = getattr(torch.get_device_module(device), "Stream", None)
    if stream is not None and not hasattr(stream, "record_event"):
        raise ConfigurationError(
            f"torch {torch.__version__} cannot shard models on {device.type}: install torch 2.7 or newer, or leave out "
            "--use_fsdp, and every process holds the whole model."
        )


def _refuse_emptied_in(strategy: Fsdp) -> None:
    """Look at each optimizer before its first step, as long as the strategy lives."""
    alive = ref(strategy)

    def look(optimizer: Optimizer, *_: Any) -> None:
        if (found := alive()) is not None:
            found.refuse_emptied(optimizer)

    finalize(strategy, register_optimizer_step_pre_hook(look).remove)
