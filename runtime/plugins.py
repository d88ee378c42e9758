"""What a script passes to `Accelerator` to shard its models, to compile them or to accumulate gradients.

Names and meaning are those of Accelerate. A field that is None is read from the variable that `accelerate launch` sets
for it. No torch in here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runtime.handlers import Handler

_FULL = "State dictionaries are gathered on the main process's CPU: leave it out."
_START = "Initialise the model before prepare: the main process's values are sent to all others."
_OFFLOAD = "Only whether layers are computed again can be said: leave it out."


def field_or_variable(plugin: Handler, name: str, variable: str, environ: Mapping[str, str]) -> Any:
    """What a field of the plugin says, else the text of the variable; None where both say nothing."""
    value = getattr(plugin, name)
    if value is not None:
        return value
    text = environ.get(variable)
    return None if text in (None, "", "None") else text


@dataclass(kw_only=True)
class GradientAccumulationPlugin(Handler):
    """How windows of micro-steps end in `accumulate`."""

    only_default: ClassVar[dict[str, str]] = {
        "adjust_scheduler": "It has no effect in Accelerate, whose default is True: leave it out. "
        "Schedulers step once for each optimizer step; give their horizon in optimizer steps."
    }

    num_steps: int | None = None
    """Micro-steps in a window; None: 1, or what ACCELERATE_GRADIENT_ACCUMULATION_STEPS says."""
    adjust_scheduler: bool = False
    sync_with_dataloader: bool = True
    """The last batch of a pass over a prepared loader ends a window, which may then be a short one."""
    sync_each_batch: bool = False
    """Gradients are exchanged in every micro-step: more communication, less memory with sharded models."""
    exact_last_window: bool = False
    """Not in Accelerate: in a window that the end of a pass cuts short, `backward` divides by the micro-steps it has,
    not by `num_steps`, so its step is as large as others. Needs a loader with a length, one `accumulate` a batch."""


@dataclass(kw_only=True)
class FullyShardedDataParallelPlugin(Handler):
    """How parameters, gradients and optimizer states are divided over the processes (FSDP2, `fully_shard`)."""

    only_default: ClassVar[dict[str, str]] = {
        "state_dict_config": _FULL,
        "optim_state_dict_config": _FULL,
        "param_init_fn": _START,
        "activation_checkpointing_offload": _OFFLOAD,
    }

    fsdp_version: int | None = None
    """The engine is FSDP2 whatever is said; 1 is warned about."""
    reshard_after_forward: bool | str | None = None
    """True: parameters are gathered again for backward. False: they stay from forward to backward (faster, larger).
    A sharding strategy of FSDP1 ("FULL_SHARD", "SHARD_GRAD_OP", ...) means what it did there."""
    mixed_precision_policy: Any = None
    """None: that of `mixed_precision`. "bf16", "fp16", "fp32", a dictionary with `param_dtype` and `reduce_dtype`, or a
    policy of PyTorch."""
    auto_wrap_policy: str | Callable[..., bool] | None = None
    """Which layers are units of their own, gathered when they run: "transformer_based_wrap", "size_based_wrap",
    "no_wrap" (the model is one unit), or a function of PyTorch's `(module, recurse, nonwrapped_numel)`."""
    transformer_cls_names_to_wrap: list[str] | str | None = None
    """Class names for "transformer_based_wrap"; None: the model's `_no_split_modules`."""
    min_num_params: int | None = None
    """Numbers that a unit has at least, for "size_based_wrap"; None or 0: the model is one unit."""
    cpu_offload: Any = None
    """Keep what is sharded in host memory; optimizers step there."""
    ignored_modules: Iterable[Any] | str | None = None
    """Modules that every process holds whole, or a regular expression that their full names match."""
    state_dict_type: Any = None
    """What checkpoints of a run hold: "FULL_STATE_DICT" or "SHARDED_STATE_DICT"."""
    activation_checkpointing: bool | None = None
    """Compute what a unit keeps for backward again instead of keeping it."""
    cpu_ram_efficient_loading: bool | None = None
    """Processes other than the first may bring the model on the meta device; that is always allowed."""

    # of FSDP1: what has a counterpart is translated, what has no effect on results is warned about
    sharding_strategy: Any = None
    backward_prefetch: Any = None
    forward_prefetch: bool | None = None
    use_orig_params: bool | None = None
    sync_module_states: bool | None = None
    limit_all_gathers: bool = True
    state_dict_config: Any = None
    optim_state_dict_config: Any = None
    param_init_fn: Any = None
    activation_checkpointing_offload: bool | None = None


@dataclass(kw_only=True)
class ParallelismConfig(Handler):
    """How the processes are arranged: `dp_replicate_size` groups, each with a model in `dp_shard_size` parts (HSDP)."""

    only_default: ClassVar[dict[str, str]] = {
        "tp_size": "Tensor parallelism is not here: give these processes to dp_shard_size.",
        "cp_size": "Context parallelism is not here: give these processes to dp_shard_size.",
        "sp_size": "Sequence parallelism is not here: give these processes to dp_shard_size.",
        "cp_backend": "Context parallelism is not here: leave it out.",
        "sp_backend": "Sequence parallelism is not here: leave it out.",
        "tp_handler": "Tensor parallelism is not here: leave it out.",
        "cp_handler": "Context parallelism is not here: leave it out.",
        "sp_handler": "Sequence parallelism is not here: leave it out.",
    }

    dp_replicate_size: int | None = None
    dp_shard_size: int | None = None
    tp_size: int | None = None
    cp_size: int | None = None
    sp_size: int | None = None
    cp_backend: str | None = None
    sp_backend: str | None = None
    tp_handler: Any = None
    cp_handler: Any = None
    sp_handler: Any = None

    def __post_init__(self) -> None:
        for name in ("tp_size", "cp_size", "sp_size"):
            if getattr(self, name) == 1:  # one process is none beside itself
                setattr(self, name, None)
        super().__post_init__()


@dataclass(kw_only=True)
class TorchDynamoPlugin(Handler):
    """Arguments of `torch.compile`, with which `prepare` compiles models in place."""

    backend: str | Callable[..., Any] | None = None
    """The name of a backend ("inductor", "eager", "aot_eager", ...) in any case, or a function; "no": no compiling."""
    mode: str | None = None
    fullgraph: bool | None = None
    dynamic: bool | None = None
    options: dict[str, Any] | None = None
    disable: bool = False
    use_regional_compilation: bool | None = None
    """Compile layers that are repeated, and what stands beside them, each by itself: one block is compiled once."""
