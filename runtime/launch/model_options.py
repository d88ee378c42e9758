"""The settings of a launch that are about the model: dividing it over the processes, compiling it.

Their values are read again, and refused where they make no sense, by `runtime.sharding` and `runtime.compilation`.
"""

from __future__ import annotations

from typing import Any

from runtime.launch import readers
from runtime.launch.option import Option, Topic, option
from runtime.launch.readers import Reader

_ALWAYS_SENT = "the main process's values are always sent to all others"


def _fsdp(name: str, text: str, read: Reader, /, variable: str = "", **rest: Any) -> Option:
    variables = (variable or name.upper(),)
    return option(
        name, Topic.SHARDS, text, read, key=f"fsdp_config.{name}", variables=variables, passes_on=True, **rest
    )


SHARDS: tuple[Option, ...] = (
    option(
        "use_fsdp",
        Topic.SHARDS,
        "Divide models over the processes.",
        readers.yes_or_no,
        is_switch=True,
        variables=("ACCELERATE_USE_FSDP",),
        passes_on=True,
        key=None,  # distributed_type: FSDP
        default=False,
    ),
    _fsdp("fsdp_version", "The engine is FSDP2 whatever is said.", readers.fsdp_version, metavar="1|2", is_shown=False),
    _fsdp(
        "fsdp_reshard_after_forward",
        "Gather parameters again for backward: less memory, slower.",
        readers.reshard,
        metavar="true|false",
        otherwise="true",
    ),
    _fsdp("fsdp_sharding_strategy", "The same in FSDP1's words, such as FULL_SHARD.", readers.text, metavar="NAME"),
    _fsdp(
        "fsdp_auto_wrap_policy",
        "Which layers are units of their own.",
        readers.choice("NO_WRAP", "TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP"),
        metavar="NAME",
    ),
    _fsdp(
        "fsdp_transformer_layer_cls_to_wrap",
        "Their classes, for TRANSFORMER_BASED_WRAP.",
        readers.names,
        "FSDP_TRANSFORMER_CLS_TO_WRAP",
        metavar="NAMES",
    ),
    _fsdp("fsdp_min_num_params", "Their size, for SIZE_BASED_WRAP.", readers.amount, metavar="N"),
    _fsdp("fsdp_offload_params", "Keep parameters in host memory.", readers.yes_or_no, metavar="true|false"),
    _fsdp(
        "fsdp_activation_checkpointing",
        "Compute activations again for backward.",
        readers.yes_or_no,
        metavar="true|false",
    ),
    _fsdp(
        "fsdp_state_dict_type",
        "What checkpoints hold.",
        readers.choice("FULL_STATE_DICT", "SHARDED_STATE_DICT"),
        metavar="FULL_STATE_DICT|SHARDED_STATE_DICT",
    ),
    _fsdp("fsdp_ignored_modules", "Modules that every process holds whole.", readers.names, metavar="REGEX"),
    _fsdp(
        "fsdp_backward_prefetch",
        "FSDP2 prefetches by itself.",
        readers.text,
        metavar="NAME",
        idle="FSDP2 prefetches by itself",
        is_shown=False,
    ),
    _fsdp(
        "fsdp_forward_prefetch",
        "Only false: FSDP2 prefetches by itself.",
        readers.yes_or_no,
        metavar="true|false",
        is_shown=False,
    ),
    _fsdp(
        "fsdp_activation_checkpointing_offload",
        "Only false: what is offloaded is decided by fsdp_offload_params.",
        readers.yes_or_no,
        metavar="true|false",
        is_shown=False,
    ),
    _fsdp(
        "fsdp_use_orig_params",
        "FSDP2 always keeps the original parameters.",
        readers.yes_or_no,
        metavar="true|false",
        is_shown=False,
        idle="FSDP2 always keeps the original parameters",
    ),
    _fsdp(
        "fsdp_sync_module_states",
        "Always so.",
        readers.yes_or_no,
        metavar="true|false",
        is_shown=False,
        idle=_ALWAYS_SENT,
    ),
    _fsdp(
        "fsdp_cpu_ram_efficient_loading",
        "Always possible.",
        readers.yes_or_no,
        metavar="true|false",
        is_shown=False,
        idle=_ALWAYS_SENT,
    ),
    option(
        "dp_replicate_size",
        Topic.SHARDS,
        "Groups of processes that hold a model each (HSDP).",
        readers.at_least_one,
        metavar="N",
        variables=("PARALLELISM_CONFIG_DP_REPLICATE_SIZE",),
        passes_on=True,
        key="parallelism_config.dp_replicate_size",
    ),
    option(
        "dp_shard_size",
        Topic.SHARDS,
        "Processes that a model is divided over.",
        readers.at_least_one,
        metavar="N",
        variables=("PARALLELISM_CONFIG_DP_SHARD_SIZE",),
        passes_on=True,
        key="parallelism_config.dp_shard_size",
    ),
)


def _dynamo(name: str, text: str, read: Reader, /, **rest: Any) -> Option:
    variables = (f"ACCELERATE_{name.upper()}",)
    return option(
        name, Topic.COMPILING, text, read, key=f"dynamo_config.{name}", variables=variables, passes_on=True, **rest
    )


COMPILING: tuple[Option, ...] = (
    _dynamo("dynamo_backend", "Compile models when they are prepared, such as inductor.", readers.text, metavar="NAME"),
    _dynamo("dynamo_mode", "torch.compile's mode.", readers.text, metavar="NAME"),
    _dynamo("dynamo_use_fullgraph", "No breaks in the graph.", readers.yes_or_no, is_switch=True),
    _dynamo("dynamo_use_dynamic", "Shapes that change.", readers.yes_or_no, is_switch=True),
    _dynamo(
        "dynamo_use_regional_compilation",
        "Compile repeated layers, each by itself.",
        readers.yes_or_no,
        is_switch=True,
    ),
)
