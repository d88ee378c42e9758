"""Every setting of a launch, once: its flag, its variables, its key in a file, how it is read, and what it is for.

Help, `--explain`, the files that `runtime config` writes and the order of precedence (`settings.py`) all come from this
table. Names, keys and variables are those of Accelerate, and of torchrun (PET_*), where they have one.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from runtime.launch import readers
from runtime.launch.option import Option, Topic, option
from runtime.launch.readers import Reader

_process, _machine, _failure, _script, _output, _shard, _compiling = (partial(option, topic) for topic in Topic)

_CLAIM = "true|false"
_PREFETCHES = "FSDP2 prefetches by itself"
_ALWAYS_SENT = "the main process's values are always sent to all others"


def _fsdp(name: str, text: str, read: Reader, /, variable: str = "", **rest: Any) -> Option:
    """A setting of the shards, which `runtime.sharding` reads again, and refuses where it makes no sense."""
    variables = (variable or name.upper(),)
    return _shard(name, text, read, key=f"fsdp_config.{name}", variables=variables, passes_on=True, **rest)


def _dynamo(name: str, text: str, read: Reader, /, **rest: Any) -> Option:
    """A setting of `torch.compile`, which `runtime.compilation` reads again."""
    variables = (f"ACCELERATE_{name.upper()}",)
    return _compiling(name, text, read, key=f"dynamo_config.{name}", variables=variables, passes_on=True, **rest)


def _idle(make: partial[Option], name: str, why: str) -> Option:
    """A flag of `accelerate launch` that asks for what is done anyway."""
    text = "Accepted for scripts that start with accelerate launch."
    return make(name, text, readers.yes_or_no, is_switch=True, key=None, is_shown=False, idle=why)


# fmt: off
_PROCESSES = (
    _process("num_processes", "Processes over all machines.", readers.processes,
             flags=("--num_processes", "-n"), metavar="N", otherwise="one per GPU, else 1"),
    _process("processes_per_machine", "Processes on each machine, in the place of --num_processes.",
             readers.processes_of_machine, flags=("--processes_per_machine", "--nproc_per_node"), metavar="N",
             variables=("PET_NPROC_PER_NODE",), is_ours=True),
    _process("cpu", "Run on the CPU, also where there are GPUs.", readers.yes_or_no,
             is_switch=True, variables=("ACCELERATE_USE_CPU",), passes_on=True, key="use_cpu", default=False),
    _process("gpu_ids", "GPUs to use, such as 0,2.", readers.gpu_ids,
             metavar="IDS", variables=("CUDA_VISIBLE_DEVICES",), otherwise="all"),
    _process("mixed_precision", "Precision of the forward pass; the script's own choice goes first.",
             readers.precision, metavar="no|fp16|bf16", variables=("ACCELERATE_MIXED_PRECISION",)),
    _process("gradient_accumulation_steps", "Micro-steps per optimizer step; the script's own choice goes first.",
             readers.at_least_one, metavar="N", variables=("ACCELERATE_GRADIENT_ACCUMULATION_STEPS",), passes_on=True,
             is_ours=True),
    _process("num_cpu_threads_per_process", "OMP_NUM_THREADS of each process.", readers.whole,
             metavar="N", variables=("OMP_NUM_THREADS",), is_ours=True,
             otherwise="cores / processes; with one process PyTorch's own"),
    _process("enable_cpu_affinity", "Bind each process to cores of its own; with GPUs to those near its GPU.",
             readers.yes_or_no, is_switch=True, variables=("ACCELERATE_CPU_AFFINITY",), default=False),
)
_MACHINES = (
    _machine("num_machines", "Machines that take part; MIN:MAX: they may come and go.", readers.machines,
             flags=("--num_machines", "--nnodes"), metavar="N|MIN:MAX", variables=("PET_NNODES",), otherwise="1"),
    _machine("machine_rank", "Which of them this is, from 0.", readers.whole,
             flags=("--machine_rank", "--node_rank"), metavar="K", variables=("PET_NODE_RANK",), otherwise="0"),
    _machine("main_process_ip", "Address of machine 0.", readers.text,
             flags=("--main_process_ip", "--master_addr"), metavar="ADDRESS",
             variables=("PET_MASTER_ADDR", "MASTER_ADDR")),
    _machine("main_process_port", "Where the processes meet.", readers.whole,
             flags=("--main_process_port", "--master_port"), metavar="PORT",
             variables=("PET_MASTER_PORT", "MASTER_PORT"), otherwise="a free port; 29500 on several machines"),
    _machine("rdzv_backend",
             "How machines meet: static (numbered by --machine_rank) or c10d (may start again, come and go).",
             readers.choice("static", "c10d"), metavar="static|c10d", variables=("PET_RDZV_BACKEND",),
             otherwise="c10d with --max_restarts or MIN:MAX, else static"),
    _machine("rdzv_conf", "Further settings of the meeting, in seconds: join_timeout, last_call_timeout, timeout.",
             readers.rdzv_conf, metavar="NAME=VALUE,...", variables=("PET_RDZV_CONF",), is_ours=True),
)
_REST = (
    _failure("max_restarts", "Start all processes again after a failure, so often.", readers.whole,
             metavar="N", variables=("PET_MAX_RESTARTS",), is_ours=True, default=0),
    _failure("monitor_interval", "Seconds between two looks at the processes.", readers.seconds,
             metavar="SECONDS", variables=("PET_MONITOR_INTERVAL",), is_ours=True, default=0.1),
    _script("module", "SCRIPT is a module: runtime launch -m package.train", readers.yes_or_no,
            flags=("--module", "-m"), is_switch=True, key=None, default=False),
    _script("no_python", "SCRIPT is a program of its own, which is not run with Python.", readers.yes_or_no,
            is_switch=True, key=None, default=False),
    _output("log_dir", "Keep what each process prints in a file of its own in this folder.", readers.text,
            metavar="FOLDER", variables=("PET_LOG_DIR",), is_ours=True),
    _output("console", "Lines that are shown: of all processes, with the rank of each as a prefix, or only those of "
            "rank 0 (main).",
            readers.choice("all", "prefix", "main"), metavar="all|prefix|main", is_ours=True,
            otherwise="all; prefix with --log_dir"),
    _output("debug", "Show torch elastic's log, and set ACCELERATE_DEBUG_MODE for the script.", readers.yes_or_no,
            is_switch=True, variables=("ACCELERATE_DEBUG_MODE",), passes_on=True, is_usual_in_files=True,
            default=False),
)
_SHARDS = (
    _shard("use_fsdp", "Divide models over the processes.", readers.yes_or_no,
           is_switch=True, variables=("ACCELERATE_USE_FSDP",), passes_on=True, key=None,  # distributed_type: FSDP
           default=False),
    _fsdp("fsdp_version", "The engine is FSDP2 whatever is said.", readers.fsdp_version, metavar="1|2", is_shown=False),
    _fsdp("fsdp_reshard_after_forward", "Gather parameters again for backward: less memory, slower.", readers.reshard,
          metavar=_CLAIM, otherwise="true"),
    _fsdp("fsdp_sharding_strategy", "The same in FSDP1's words, such as FULL_SHARD.", readers.text, metavar="NAME"),
    _fsdp("fsdp_auto_wrap_policy", "Which layers are units of their own.",
          readers.choice("NO_WRAP", "TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP"), metavar="NAME"),
    _fsdp("fsdp_transformer_layer_cls_to_wrap", "Their classes, for TRANSFORMER_BASED_WRAP.", readers.names,
          "FSDP_TRANSFORMER_CLS_TO_WRAP", metavar="NAMES"),
    _fsdp("fsdp_min_num_params", "Their size, for SIZE_BASED_WRAP.", readers.amount, metavar="N"),
    _fsdp("fsdp_offload_params", "Keep parameters in host memory.", readers.yes_or_no, metavar=_CLAIM),
    _fsdp("fsdp_activation_checkpointing", "Compute activations again for backward.", readers.yes_or_no,
          metavar=_CLAIM),
    _fsdp("fsdp_state_dict_type", "What checkpoints hold.", readers.choice("FULL_STATE_DICT", "SHARDED_STATE_DICT"),
          metavar="FULL_STATE_DICT|SHARDED_STATE_DICT"),
    _fsdp("fsdp_ignored_modules", "Modules that every process holds whole.", readers.names, metavar="REGEX"),
    _fsdp("fsdp_backward_prefetch", f"{_PREFETCHES}.", readers.text, metavar="NAME", idle=_PREFETCHES, is_shown=False),
    _fsdp("fsdp_forward_prefetch", f"Only false: {_PREFETCHES}.", readers.yes_or_no, metavar=_CLAIM, is_shown=False),
    _fsdp("fsdp_activation_checkpointing_offload",
          "Only false: what is offloaded is decided by fsdp_offload_params.", readers.yes_or_no, metavar=_CLAIM,
          is_shown=False),
    _fsdp("fsdp_use_orig_params", "FSDP2 always keeps the original parameters.", readers.yes_or_no, metavar=_CLAIM,
          is_shown=False, idle="FSDP2 always keeps the original parameters"),
    _fsdp("fsdp_sync_module_states", "Always so.", readers.yes_or_no, metavar=_CLAIM,
          is_shown=False, idle=_ALWAYS_SENT),
    _fsdp("fsdp_cpu_ram_efficient_loading", "Always possible.", readers.yes_or_no, metavar=_CLAIM,
          is_shown=False, idle=_ALWAYS_SENT),
    _shard("dp_replicate_size", "Groups of processes that hold a model each (HSDP).", readers.at_least_one,
           metavar="N", variables=("PARALLELISM_CONFIG_DP_REPLICATE_SIZE",), passes_on=True,
           key="parallelism_config.dp_replicate_size"),
    _shard("dp_shard_size", "Processes that a model is divided over.", readers.at_least_one,
           metavar="N", variables=("PARALLELISM_CONFIG_DP_SHARD_SIZE",), passes_on=True,
           key="parallelism_config.dp_shard_size"),
)
_COMPILING = (
    _dynamo("dynamo_backend", "Compile models when they are prepared, such as inductor.", readers.text, metavar="NAME"),
    _dynamo("dynamo_mode", "torch.compile's mode.", readers.text, metavar="NAME"),
    _dynamo("dynamo_use_fullgraph", "No breaks in the graph.", readers.yes_or_no, is_switch=True),
    _dynamo("dynamo_use_dynamic", "Shapes that change.", readers.yes_or_no, is_switch=True),
    _dynamo("dynamo_use_regional_compilation", "Compile repeated layers, each by itself.", readers.yes_or_no,
            is_switch=True),
)
_ACCELERATES = (
    _idle(_process, "multi_gpu", "all GPUs are used where several processes are asked for, or none is named"),
    _idle(_process, "tpu", "TPU chips that are there are found"),
    _idle(_machine, "same_network", "machines always meet at main_process_ip"),
)
# fmt: on

OPTIONS: tuple[Option, ...] = (*_PROCESSES, *_MACHINES, *_REST, *_SHARDS, *_COMPILING, *_ACCELERATES)
BY_NAME = {known.name: known for known in OPTIONS}
