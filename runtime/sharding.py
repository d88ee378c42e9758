"""The settings of sharded models, from the plugin, the parallelism configuration and the variables of the launcher."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from runtime.config import flag
from runtime.errors import ConfigurationError, UnsupportedArgument, refuse_other_kind
from runtime.plugins import FullyShardedDataParallelPlugin, ParallelismConfig, field_or_variable


class WrapBy(str, Enum):
    """How the layers that are units of their own are chosen."""

    NONE = "NO_WRAP"
    CLASS = "TRANSFORMER_BASED_WRAP"
    SIZE = "SIZE_BASED_WRAP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """How many groups of processes hold a model each, and over how many processes each model is sharded.

    None: as many as there are processes left.
    """

    replicate: int = 1
    shard: int | None = None

    def sizes(self, processes: int) -> tuple[int, int]:
        """Both sizes for this number of processes.

        Raises:
            ConfigurationError: their product is another number.
        """
        shard = self.shard or processes // self.replicate
        if self.replicate * shard != processes:
            raise ConfigurationError(
                f"dp_replicate_size={self.replicate} times dp_shard_size={shard} is not the number of processes, "
                f"{processes}. Change one of the sizes, or start {self.replicate * shard} processes."
            )
        return self.replicate, shard


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """What `fully_shard` is told."""

    reshard_after_forward: bool
    is_hybrid: bool  # one model per machine
    precision: Any
    wrap: WrapBy | Callable[..., bool]
    class_names: tuple[str, ...] | None
    min_parameters: int
    cpu_offload: bool
    ignored: tuple[Any, ...] | str | None
    writes_shards: bool
    activation_checkpointing: bool
    arrangement: Arrangement = Arrangement()


STRATEGIES = {  # of FSDP1: parameters are gathered again for backward, one model per machine
    "FULL_SHARD": (True, False),
    "SHARD_GRAD_OP": (False, False),
    "HYBRID_SHARD": (True, True),
    "HYBRID_SHARD_ZERO2": (False, True),
}
NUMBERED = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")  # from 1 on

VARIABLES = {  # field → what `accelerate launch` sets
    "sharding_strategy": "FSDP_SHARDING_STRATEGY",
    "reshard_after_forward": "FSDP_RESHARD_AFTER_FORWARD",
    "auto_wrap_policy": "FSDP_AUTO_WRAP_POLICY",
    "transformer_cls_names_to_wrap": "FSDP_TRANSFORMER_CLS_TO_WRAP",
    "min_num_params": "FSDP_MIN_NUM_PARAMS",
    "cpu_offload": "FSDP_OFFLOAD_PARAMS",
    "ignored_modules": "FSDP_IGNORED_MODULES",
    "state_dict_type": "FSDP_STATE_DICT_TYPE",
    "activation_checkpointing": "FSDP_ACTIVATION_CHECKPOINTING",
    "activation_checkpointing_offload": "FSDP_ACTIVATION_CHECKPOINTING_OFFLOAD",
    "forward_prefetch": "FSDP_FORWARD_PREFETCH",
}
WITHOUT_EFFECT = {  # what a script asks of FSDP1 and FSDP2 does anyway, or in its own way
    "backward_prefetch": "FSDP2 prefetches by itself",
    "use_orig_params": "FSDP2 always keeps the original parameters",
    "sync_module_states": "the main process's values are always sent to all others",
    "limit_all_gathers": "FSDP2 limits its memory by itself",
}


def sharding(
    plugin: FullyShardedDataParallelPlugin | None,
    parallelism: ParallelismConfig | None,
    environ: Mapping[str, str],
    processes: int,
) -> Sharding | None:
    """The settings; None if nobody asks for sharding.

    Raises:
        ConfigurationError: a value that is not understood; `UnsupportedArgument` for what FSDP2 cannot do.
    """
    refuse_other_kind("fsdp_plugin", plugin, FullyShardedDataParallelPlugin)
    refuse_other_kind("parallelism_config", parallelism, ParallelismConfig)
    layout = _layout(parallelism, environ)
    is_asked = flag(environ.get("ACCELERATE_USE_FSDP", False), "ACCELERATE_USE_FSDP")
    if plugin is None and not is_asked and layout.shard in (None, 1):
        if layout != Arrangement():
            Arrangement(replicate=layout.replicate, shard=1).sizes(processes)
        return None
    given = plugin or FullyShardedDataParallelPlugin()
    values = {name: field_or_variable(given, name, variable, environ) for name, variable in VARIABLES.items()}
    _complain(given, values)
    reshard, is_hybrid = _strategy(values["sharding_strategy"], values["reshard_after_forward"])
    wrap = _wrap(values["auto_wrap_policy"])
    names = values["transformer_cls_names_to_wrap"]
    ignored = values["ignored_modules"]
    return Sharding(
        reshard_after_forward=reshard,
        is_hybrid=is_hybrid,
        precision=given.mixed_precision_policy,
        wrap=wrap,
        class_names=tuple(names.split(",") if isinstance(names, str) else names) if names else None,
        min_parameters=_count(values["min_num_params"]),
        cpu_offload=_offload(values["cpu_offload"]),
        ignored=ignored if ignored is None or isinstance(ignored, str) else tuple(ignored),
        writes_shards=_writes_shards(values["state_dict_type"]),
        activation_checkpointing=flag(values["activation_checkpointing"] or False, "activation_checkpointing"),
        arrangement=layout,
    )


def _complain(plugin: FullyShardedDataParallelPlugin, values: Mapping[str, Any]) -> None:
    """Say what is asked for and has no effect here.

    Raises:
        UnsupportedArgument: it would have one.
    """
    if plugin.fsdp_version == 1:
        warnings.warn("fsdp_version=1: models are sharded with FSDP2 all the same.", stacklevel=6)
    for name, reason in WITHOUT_EFFECT.items():
        if getattr(plugin, name) != getattr(FullyShardedDataParallelPlugin, name):
            warnings.warn(f"FullyShardedDataParallelPlugin({name}=...) has no effect: {reason}.", stacklevel=6)
    said = plugin.mixed_precision_policy
    if (said.get("buffer_dtype") if isinstance(said, dict) else getattr(said, "buffer_dtype", None)) is not None:
        warnings.warn(
            "buffer_dtype of mixed_precision_policy has no effect: FSDP2 keeps buffers as they are.", stacklevel=6
        )
    for name in ("forward_prefetch", "activation_checkpointing_offload"):
        if values[name] is not None and flag(values[name], name):
            raise UnsupportedArgument(f"{name}={values[name]}", "FSDP2 decides that by itself: leave it out.")


def _strategy(strategy: Any, reshard: Any) -> tuple[bool, bool]:
    """Whether parameters are gathered again for backward, and whether there is one model per machine."""
    said = reshard if reshard is not None else strategy
    if said is None or isinstance(said, bool):
        return said is not False, False
    text = str(getattr(said, "name", said)).upper()
    if text.isdigit() and 1 <= int(text) <= len(NUMBERED):
        text = NUMBERED[int(text) - 1]
    if text == "NO_SHARD":
        raise UnsupportedArgument("sharding_strategy=NO_SHARD", "Leave FSDP out: models are then replicated.")
    if text in STRATEGIES:
        return STRATEGIES[text]
    try:
        return flag(said), False
    except ConfigurationError:
        name, known = "sharding_strategy" if reshard is None else "reshard_after_forward", ", ".join(STRATEGIES)
        raise ConfigurationError(f"{name}={said!r} is not known. Known: true, false, {known}.") from None


def _wrap(policy: Any) -> WrapBy | Callable[..., bool]:
    if policy is None:
        return WrapBy.NONE
    if callable(policy):
        chosen: Callable[..., bool] = policy
        return chosen
    text = str(policy).upper()
    if text not in {kind.value for kind in WrapBy}:
        known = ", ".join(kind.value.lower() for kind in WrapBy)
        raise ConfigurationError(f"auto_wrap_policy={policy!r} is not known. Known: {known}, or a function.")
    return WrapBy(text)


def _count(value: Any) -> int:
    if value is None:
        return 0
    try:
        return int(float(value))  # 1e8, too
    except (ValueError, OverflowError):
        raise ConfigurationError(f"min_num_params={value!r} is not a number.") from None


def _offload(value: Any) -> bool:
    if value is None or isinstance(value, (bool, str)):
        return flag(value or False, "cpu_offload")
    return bool(getattr(value, "offload_params", True))  # CPUOffload of FSDP1, CPUOffloadPolicy of FSDP2


def _writes_shards(value: Any) -> bool:
    text = "FULL_STATE_DICT" if value is None else str(getattr(value, "name", value)).upper()
    if text not in ("FULL_STATE_DICT", "SHARDED_STATE_DICT"):
        raise UnsupportedArgument(f"state_dict_type={text}", "Use FULL_STATE_DICT or SHARDED_STATE_DICT.")
    return text == "SHARDED_STATE_DICT"


def _layout(parallelism: ParallelismConfig | None, environ: Mapping[str, str]) -> Arrangement:
    if parallelism is None:
        name = "ACCELERATE_USE_PARALLELISM_CONFIG"
        if not flag(environ.get(name, False), name):
            return Arrangement()
        names = ("dp_replicate_size", "dp_shard_size", "tp_size", "cp_size", "sp_size")
        said = {name: environ.get(f"PARALLELISM_CONFIG_{name.upper()}", "1") for name in names}
        sizes: dict[str, Any] = {name: _size(name, text) for name, text in said.items()}
        parallelism = ParallelismConfig(**sizes)
    replicate = _size("dp_replicate_size", parallelism.dp_replicate_size or 1)
    shard = None if parallelism.dp_shard_size is None else _size("dp_shard_size", parallelism.dp_shard_size)
    return Arrangement(replicate=replicate, shard=shard)


def _size(name: str, value: Any) -> int:
    try:
        size = int(value)
    except ValueError:
        size = 0
    if size < 1:
        raise ConfigurationError(f"{name}={value!r} is not a whole number of at least 1.")
    return size
