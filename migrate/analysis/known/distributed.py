"""Several processes: who starts them, how they talk, what wraps a model for them, and how a process knows its place."""

from migrate.analysis.known.table import Gives, Makes, Other, Passes, Reads, Row, each
from migrate.analysis.roles import PLACE, Role

DATA_PARALLEL = frozenset(
    {"torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.data_parallel.DataParallel"}
)
#: What a program calls to run a model on several GPUs of one process, batch by batch.
SPLITTING = frozenset(
    f"torch.nn.parallel.{name}"
    for name in "data_parallel data_parallel.data_parallel replicate replicate.replicate".split()
)
DISTRIBUTED_DATA_PARALLEL = frozenset(
    f"{module}.DistributedDataParallel"
    for module in ("torch.nn.parallel", "torch.nn.parallel.distributed", "apex.parallel", "apex.parallel.distributed")
)
SHARDING = frozenset(
    """torch.distributed.fsdp.FullyShardedDataParallel torch.distributed.fsdp.fully_shard
    torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel
    torch.distributed._composable.fsdp.fully_shard""".split()
)
PIPELINES = frozenset({"torch.distributed.pipelining.pipeline"})
TENSOR_PARALLEL = frozenset(
    f"torch.distributed.tensor.parallel.{name}" for name in ("parallelize_module", "api.parallelize_module")
)
PROCESS_GROUPS = frozenset(
    {"torch.distributed.init_process_group", "torch.distributed.distributed_c10d.init_process_group"}
)
SAMPLERS = frozenset({"torch.utils.data.DistributedSampler", "torch.utils.data.distributed.DistributedSampler"})
#: What gives those rows of some data that a number says: functions, and methods of tensors and data sets.
CHOOSING = frozenset(
    """itertools.islice datasets.distributed.split_dataset_by_node torch.narrow torch.select torch.index_select
    torch.take numpy.take""".split()
)
CHOOSING_METHODS = frozenset("shard select skip take narrow index_select".split())
RPC = frozenset({"torch.distributed.rpc.init_rpc"})
LAUNCHERS = frozenset(
    """torch.multiprocessing.spawn torch.multiprocessing.start_processes torch.multiprocessing.spawn.spawn
    torch.multiprocessing.spawn.start_processes""".split()
)
#: What a process of a job asks for its place.
JOBS = frozenset({"submitit.JobEnvironment", "submitit.job_environment.JobEnvironment"})
DEEPSPEED = frozenset({"deepspeed.initialize"})
#: What joins the processes, or their gradients, in a way of a library's own, and the name of that.
LIBRARIES = {
    f"{module}.{name}": library
    for library, module, names in (
        ("Horovod", "horovod.torch", "init DistributedOptimizer"),
        ("BytePS", "byteps.torch", "init DistributedOptimizer"),
        ("Bagua", "bagua.torch_api", "init_process_group"),
        ("Colossal-AI", "colossalai", "launch launch_from_torch launch_from_slurm"),
        ("FairScale", "fairscale.nn", "FullyShardedDataParallel ShardedDataParallel"),
        ("FairScale", "fairscale.nn.data_parallel", "FullyShardedDataParallel ShardedDataParallel"),
        ("Ray Train", "ray.train.torch", "prepare_model prepare_data_loader"),
    )
    for name in names.split()
}

#: What all processes must enter together.
COLLECTIVES = frozenset(
    f"{module}.{name}"
    for module in ("torch.distributed", "torch.distributed.distributed_c10d")
    for name in """all_gather all_gather_into_tensor all_gather_object all_reduce all_to_all all_to_all_single barrier
    broadcast broadcast_object_list gather gather_object monitored_barrier reduce reduce_scatter
    reduce_scatter_tensor scatter scatter_object_list new_group""".split()
)

#: Make the BatchNorm of a model one that is shared by the processes, whatever group they are in.
SYNCHRONIZING = frozenset({"torch.nn.SyncBatchNorm.convert_sync_batchnorm", "apex.parallel.convert_syncbn_model"})
#: What gives a model back is run in its place: around the one inside, gradients would not be averaged.
COMPILING = frozenset({"torch.compile"})

_MODULE = (0, "module")

_WRAPPERS: tuple[Row, ...] = (
    *(
        Passes(name, _MODULE, derived=Role.MODEL)
        for name in sorted(DATA_PARALLEL | DISTRIBUTED_DATA_PARALLEL | SHARDING)
    ),
    Passes("torch.nn.parallel.DistributedDataParallelCPU", _MODULE, derived=Role.MODEL, old=True),
    Passes("apex.parallel.convert_syncbn_model", _MODULE),
    *each(Passes, ("fairscale.nn", "fairscale.nn.data_parallel"), "FullyShardedDataParallel", argument=_MODULE),
    *each(Passes, ("fairscale.nn", "fairscale.nn.data_parallel"), "ShardedDataParallel", argument=_MODULE),
    Gives("deepspeed.initialize", ((1, "model"), (2, "optimizer"), None, None)),
    Passes("horovod.torch.DistributedOptimizer", (0, "optimizer")),
    Passes("byteps.torch.DistributedOptimizer", (0, "optimizer")),
    Passes("ray.train.torch.prepare_model", (0, "model"), derived=Role.MODEL),
    Passes("ray.train.torch.prepare_data_loader", (0, "data_loader")),
)

_PLACE: tuple[Row, ...] = (
    Other("torch.distributed.*"),
    *each(Makes, ("torch.distributed", "torch.distributed.distributed_c10d"), "get_rank", role=Role.RANK),
    *each(Makes, ("torch.distributed", "torch.distributed.distributed_c10d"), "get_world_size", role=Role.WORLD_SIZE),
    Makes("torch.distributed.get_node_local_rank", Role.LOCAL_RANK),
    *each(Reads, ("os",), "environ environ.get getenv"),
    *each(
        Passes,
        ("builtins",),
        "int",
        keeps=PLACE,
    ),
)

#: Environment variables that launchers set: torchrun, Slurm, Open MPI.
ENVIRONMENT = {
    "RANK": Role.RANK,
    "SLURM_PROCID": Role.RANK,
    "OMPI_COMM_WORLD_RANK": Role.RANK,
    "LOCAL_RANK": Role.LOCAL_RANK,
    "SLURM_LOCALID": Role.LOCAL_RANK,
    "OMPI_COMM_WORLD_LOCAL_RANK": Role.LOCAL_RANK,
    "WORLD_SIZE": Role.WORLD_SIZE,
    "SLURM_NTASKS": Role.WORLD_SIZE,
    "SLURM_NPROCS": Role.WORLD_SIZE,
    "OMPI_COMM_WORLD_SIZE": Role.WORLD_SIZE,
}

ROWS = (*_WRAPPERS, *_PLACE)
