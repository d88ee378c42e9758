"""Every setting of a launch, once: its flag, its variables, its key in a file, how it is read, and what it is for.

Help, `--explain`, the files that `runtime config` writes and the order of precedence (`settings.py`) all come from this
table. Names, keys and variables are those of Accelerate, and of torchrun (PET_*), where they have one.
"""

from __future__ import annotations

from runtime.launch import readers
from runtime.launch.model_options import COMPILING, SHARDS
from runtime.launch.option import Option, Topic, option

_PROCESSES = (
    option(
        "num_processes",
        Topic.PROCESSES,
        "Processes over all machines.",
        readers.processes,
        flags=("--num_processes", "-n"),
        metavar="N",
        otherwise="one per GPU, else 1",
    ),
    option(
        "processes_per_machine",
        Topic.PROCESSES,
        "Processes on each machine, in the place of --num_processes.",
        readers.processes_of_machine,
        flags=("--processes_per_machine", "--nproc_per_node"),
        metavar="N",
        variables=("PET_NPROC_PER_NODE",),
        is_ours=True,
    ),
    option(
        "cpu",
        Topic.PROCESSES,
        "Run on the CPU, also where there are GPUs.",
        readers.yes_or_no,
        is_switch=True,
        variables=("ACCELERATE_USE_CPU",),
        passes_on=True,
        key="use_cpu",
        default=False,
    ),
    option(
        "gpu_ids",
        Topic.PROCESSES,
        "GPUs to use, such as 0,2.",
        readers.gpu_ids,
        metavar="IDS",
        variables=("CUDA_VISIBLE_DEVICES",),
        otherwise="all",
    ),
    option(
        "mixed_precision",
        Topic.PROCESSES,
        "Precision of the forward pass; the script's own choice goes first.",
        readers.precision,
        metavar="no|fp16|bf16",
        variables=("ACCELERATE_MIXED_PRECISION",),
    ),
    option(
        "gradient_accumulation_steps",
        Topic.PROCESSES,
        "Micro-steps per optimizer step; the script's own choice goes first.",
        readers.at_least_one,
        metavar="N",
        variables=("ACCELERATE_GRADIENT_ACCUMULATION_STEPS",),
        passes_on=True,
        is_ours=True,
    ),
    option(
        "num_cpu_threads_per_process",
        Topic.PROCESSES,
        "OMP_NUM_THREADS of each process.",
        readers.whole,
        metavar="N",
        variables=("OMP_NUM_THREADS",),
        is_ours=True,
        otherwise="cores / processes; with one process PyTorch's own",
    ),
    option(
        "enable_cpu_affinity",
        Topic.PROCESSES,
        "Bind each process to cores of its own; with GPUs to those near its GPU.",
        readers.yes_or_no,
        is_switch=True,
        variables=("ACCELERATE_CPU_AFFINITY",),
        default=False,
    ),
)
_MACHINES = (
    option(
        "num_machines",
        Topic.MACHINES,
        "Machines that take part; MIN:MAX: they may come and go.",
        readers.machines,
        flags=("--num_machines", "--nnodes"),
        metavar="N|MIN:MAX",
        variables=("PET_NNODES",),
        otherwise="1",
    ),
    option(
        "machine_rank",
        Topic.MACHINES,
        "Which of them this is, from 0.",
        readers.whole,
        flags=("--machine_rank", "--node_rank"),
        metavar="K",
        variables=("PET_NODE_RANK",),
        otherwise="0",
    ),
    option(
        "main_process_ip",
        Topic.MACHINES,
        "Address of machine 0.",
        readers.text,
        flags=("--main_process_ip", "--master_addr"),
        metavar="ADDRESS",
        variables=("PET_MASTER_ADDR", "MASTER_ADDR"),
    ),
    option(
        "main_process_port",
        Topic.MACHINES,
        "Where the processes meet.",
        readers.whole,
        flags=("--main_process_port", "--master_port"),
        metavar="PORT",
        variables=("PET_MASTER_PORT", "MASTER_PORT"),
        otherwise="a free port; 29500 on several machines",
    ),
    option(
        "rdzv_backend",
        Topic.MACHINES,
        "How machines meet: static (numbered by --machine_rank) or c10d (may start again, come and go).",
        readers.choice("static", "c10d"),
        metavar="static|c10d",
        variables=("PET_RDZV_BACKEND",),
        otherwise="c10d with --max_restarts or MIN:MAX, else static",
    ),
    option(
        "rdzv_conf",
        Topic.MACHINES,
        "Further settings of the meeting, in seconds: join_timeout, last_call_timeout, timeout.",
        readers.rdzv_conf,
        metavar="NAME=VALUE,...",
        variables=("PET_RDZV_CONF",),
        is_ours=True,
    ),
)
_REST = (
    option(
        "max_restarts",
        Topic.FAILURES,
        "Start all processes again after a failure, so often.",
        readers.whole,
        metavar="N",
        variables=("PET_MAX_RESTARTS",),
        is_ours=True,
        default=0,
    ),
    option(
        "monitor_interval",
        Topic.FAILURES,
        "Seconds between two looks at the processes.",
        readers.seconds,
        metavar="SECONDS",
        variables=("PET_MONITOR_INTERVAL",),
        is_ours=True,
        default=0.1,
    ),
    option(
        "module",
        Topic.SCRIPT,
        "SCRIPT is a module: runtime launch -m package.train",
        readers.yes_or_no,
        flags=("--module", "-m"),
        is_switch=True,
        key=None,
        default=False,
    ),
    option(
        "no_python",
        Topic.SCRIPT,
        "SCRIPT is a program of its own, which is not run with Python.",
        readers.yes_or_no,
        is_switch=True,
        key=None,
        default=False,
    ),
    option(
        "log_dir",
        Topic.OUTPUT,
        "Keep what each process prints in a file of its own in this folder.",
        readers.text,
        metavar="FOLDER",
        variables=("PET_LOG_DIR",),
        is_ours=True,
    ),
    option(
        "console",
        Topic.OUTPUT,
        "Lines that are shown: of all processes, with the rank of each as a prefix, or only those of rank 0 (main).",
        readers.choice("all", "prefix", "main"),
        metavar="all|prefix|main",
        is_ours=True,
        otherwise="all; prefix with --log_dir",
    ),
    option(
        "debug",
        Topic.OUTPUT,
        "Show torch elastic's log, and set ACCELERATE_DEBUG_MODE for the script.",
        readers.yes_or_no,
        is_switch=True,
        variables=("ACCELERATE_DEBUG_MODE",),
        passes_on=True,
        is_usual_in_files=True,
        default=False,
    ),
)


def _idle(name: str, topic: Topic, why: str) -> Option:
    """A flag of `accelerate launch` that asks for what is done anyway."""
    text = "Accepted for scripts that start with accelerate launch."
    return option(name, topic, text, readers.yes_or_no, is_switch=True, key=None, is_shown=False, idle=why)


_ACCELERATES = (
    _idle("multi_gpu", Topic.PROCESSES, "all GPUs are used where several processes are asked for, or none is named"),
    _idle("tpu", Topic.PROCESSES, "TPU chips that are there are found"),
    _idle("same_network", Topic.MACHINES, "machines always meet at main_process_ip"),
)

OPTIONS: tuple[Option, ...] = (*_PROCESSES, *_MACHINES, *_REST, *SHARDS, *COMPILING, *_ACCELERATES)
BY_NAME = {known.name: known for known in OPTIONS}
