"""The configuration objects a script passes to `Accelerator`: names, defaults and meaning as in Accelerate.

A field that Accelerate has and this runtime does not raises `UnsupportedArgument` as soon as it is given another value
than its default; nothing is accepted and ignored.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from runtime.errors import ConfigurationError, UnsupportedArgument


@dataclass(kw_only=True)
class Handler:
    """What all handlers share: the fields that are only accepted at their default, and the arguments to pass on."""

    only_default: ClassVar[dict[str, str]] = {}  # field → the way out

    def __post_init__(self) -> None:
        for option in dataclasses.fields(self):
            if option.name in self.only_default and getattr(self, option.name) != option.default:
                raise UnsupportedArgument(f"{type(self).__name__}({option.name}=...)", self.only_default[option.name])

    def arguments(self) -> dict[str, Any]:
        """The fields that this runtime uses, as keyword arguments."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in self.only_default}


@dataclass(kw_only=True)
class DataLoaderConfiguration(Handler):
    """How `prepare` shares the data of a loader out over the processes."""

    split_batches: bool = False
    """True: the loader's batch size is the global one, every batch is cut into one part per process.
    False: it is the size per process, whole batches are dealt to the processes in turn."""
    dispatch_batches: bool | None = None
    """True: the main process reads all data and sends every other its share. None and False: every process reads."""
    even_batches: bool = True
    """True: the last round of batches is completed with samples from the start of the epoch, so that every process
    takes the same number of steps."""
    pad_batches: bool = False
    """True: every batch of a process has the same number of rows, so that nothing is compiled for a short one. It is
    filled up with copies, which do not count: `gather_for_metrics` drops them, `Accelerator.batch_mask` tells them."""
    use_seedable_sampler: bool = False
    """True: loaders that shuffle draw the order of epoch e from a generator seeded with `data_seed + e`, and from no
    other. `set_epoch(e)` of the prepared loader says which epoch comes; a whole pass goes on to the next."""
    data_seed: int | None = None
    """None: the seed that PyTorch's generator started with."""
    non_blocking: bool = False
    """Copy batches to the device without waiting (use with pin_memory=True)."""
    use_stateful_dataloader: bool = False
    """Changes nothing: every prepared loader has an exact `state_dict` and `load_state_dict`, without torchdata."""


@dataclass(kw_only=True)
class DistributedDataParallelKwargs(Handler):
    """Arguments of `torch.nn.parallel.DistributedDataParallel`."""

    only_default: ClassVar[dict[str, str]] = {
        "dim": "Put the batch dimension first.",
        "check_reduction": "PyTorch no longer uses it: leave it out.",
    }

    dim: int = 0
    broadcast_buffers: bool = True
    bucket_cap_mb: int = 25  # PyTorch's default
    find_unused_parameters: bool = False
    """Average gradients when each backward is over: also parameters that take no part in it, a second backward through
    one forward, and layers that are frozen or released between steps. PyTorch allows only the first of these."""
    check_reduction: bool = False
    gradient_as_bucket_view: bool = False
    static_graph: bool = False
    comm_hook: str = "no"
    """How gradients are sent: "fp16", "bf16" (half the bytes, rounded), "power_sgd", "batched_power_sgd" (low rank)."""
    comm_wrapper: str = "no"
    """"fp16" or "bf16": what a "power_sgd" hook sends is rounded, too."""
    comm_state_option: dict[str, Any] | None = None
    """Arguments of PyTorch's `PowerSGDState`."""

    def arguments(self) -> dict[str, Any]:
        return {name: value for name, value in super().arguments().items() if not name.startswith("comm_")}

    @property
    def may_adapt(self) -> bool:
        """Whether gradients may be averaged in another way where that is needed: nothing rules it out."""
        return not (self.static_graph or self.gradient_as_bucket_view or self.comm_hook != "no")


@dataclass(kw_only=True)
class GradScalerKwargs(Handler):
    """Arguments of `torch.amp.GradScaler`, used with mixed_precision="fp16"."""

    init_scale: float = 65536.0  # 2**16, PyTorch's default
    growth_factor: float = 2.0
    backoff_factor: float = 0.5
    growth_interval: int = 2000
    enabled: bool = True


@dataclass(kw_only=True)
class InitProcessGroupKwargs(Handler):
    """Arguments of `torch.distributed.init_process_group`; None leaves the choice to the device and to PyTorch."""

    backend: str | None = None
    init_method: str | None = None
    timeout: timedelta | None = None


@dataclass(kw_only=True)
class AutocastKwargs(Handler):
    """Arguments of `torch.autocast`."""

    enabled: bool = True
    cache_enabled: bool | None = None


@dataclass(kw_only=True)
class ProfileKwargs(Handler):
    """Arguments of `torch.profiler.profile` for `Accelerator.profile`."""

    activities: list[str] | None = None
    """Names of `torch.profiler.ProfilerActivity` ("cpu", "cuda", ...); None: all that this machine has."""
    schedule_option: dict[str, int] | None = None
    """Arguments of `torch.profiler.schedule`: wait, warmup, active, repeat, skip_first."""
    on_trace_ready: Callable[..., Any] | None = None
    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    output_trace_dir: str | None = None
    """The folder that every process writes `profile_<rank>.json` into, for chrome://tracing or Perfetto."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Handlers:
    """At most one handler of each kind; the defaults where none was given."""

    ddp: DistributedDataParallelKwargs = field(default_factory=DistributedDataParallelKwargs)
    scaler: GradScalerKwargs = field(default_factory=GradScalerKwargs)
    group: InitProcessGroupKwargs = field(default_factory=InitProcessGroupKwargs)
    autocast: AutocastKwargs = field(default_factory=AutocastKwargs)
    profile: ProfileKwargs = field(default_factory=ProfileKwargs)

    @classmethod
    def sorted_from(cls, handlers: list[Any] | None) -> Handlers:
        """Sort `kwargs_handlers` by kind.

        Raises:
            ConfigurationError: an object of another kind, or two of one kind.
        """
        slots: dict[str, Any] = {slot.name: slot.default_factory for slot in dataclasses.fields(cls)}
        given: dict[str, Any] = {}
        if isinstance(handlers, Handler):
            raise ConfigurationError(f"kwargs_handlers is a list: [{type(handlers).__name__}(...)].")
        for handler in handlers or []:
            slot = next((name for name, kind in slots.items() if isinstance(handler, kind)), None)
            if slot is None:
                known = ", ".join(kind.__name__ for kind in slots.values())
                raise ConfigurationError(f"kwargs_handlers has a {type(handler).__name__}. Known: {known}.")
            if slot in given:
                raise ConfigurationError(f"kwargs_handlers has two {slots[slot].__name__}. Pass one of each kind.")
            given[slot] = handler
        return cls(**given)
