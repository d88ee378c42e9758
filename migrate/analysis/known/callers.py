"""Libraries that call functions of the project: what they are handed, and what they pass.

`<model>.apply` is a method of objects of a role, `multiprocessing.Pool().map` one of what calling the name gives.
"""

from migrate.analysis.known.table import NOWHERE, Calls, Each, Enters, Items, Passes, Row, What, each
from migrate.analysis.roles import Role

_PROCESSES: tuple[Row, ...] = (
    *each(
        Calls,
        ("torch.multiprocessing", "torch.multiprocessing.spawn"),
        "spawn start_processes",
        function=(0, "fn"),
        passes=(Role.LOCAL_RANK,),
        rest=(1, "args"),
    ),
    *each(
        Calls,
        ("torch_xla.distributed.xla_multiprocessing", "torch_xla"),
        "spawn launch",
        function=(0, "fn"),
        passes=(None,),
        rest=(1, "args"),
    ),
    *each(
        Calls,
        ("accelerate", "accelerate.launchers"),
        "notebook_launcher debug_launcher",
        function=(0, "function"),
        rest=(1, "args"),
    ),
    *(
        Calls(name, (1, "target"), rest=(3, "args"), keywords=(4, "kwargs"))
        for name in (
            "threading.Thread multiprocessing.Process multiprocessing.get_context().Process "
            "torch.multiprocessing.Process torch.multiprocessing.get_context().Process"
        ).split()
    ),
    Calls("threading.Timer", (1, "function"), rest=(2, "args"), keywords=(3, "kwargs")),
)

_POOLS = ["multiprocessing.Pool()", "multiprocessing.pool.ThreadPool()", "torch.multiprocessing.Pool()"]
_EXECUTORS = [
    f"concurrent.futures.{module}{name}()"
    for module, name in (
        ("", "ThreadPoolExecutor"),
        ("", "ProcessPoolExecutor"),
        ("thread.", "ThreadPoolExecutor"),
        ("process.", "ProcessPoolExecutor"),
    )
]

_WORKERS: tuple[Row, ...] = (
    *each(Calls, _POOLS, "map imap imap_unordered", function=(0, "func"), over=1, gives=What.EACH, often=True),
    *each(Calls, _POOLS, "starmap", function=(0, "func"), passes=(), gives=What.EACH, often=True),
    *each(Calls, _POOLS, "map_async", function=(0, "func"), over=1, often=True),
    *each(Calls, _POOLS, "apply", function=(0, "func"), rest=(1, "args"), keywords=(2, "kwds"), gives=What.RESULT),
    *each(Calls, _POOLS, "apply_async", function=(0, "func"), rest=(1, "args"), keywords=(2, "kwds"), gives=What.LATER),
    *each(Calls, _EXECUTORS, "map", function=(0, "fn"), over=1, gives=What.EACH, often=True),
    *each(Calls, _EXECUTORS, "submit", function=(0, "fn"), after=1, gives=What.LATER),
    *each(Calls, ("tqdm.contrib.concurrent",), "process_map thread_map", function=(0, "fn"), over=1, gives=What.EACH),
    Passes("concurrent.futures.as_completed", (0, "fs"), role=Role.ITERATOR),
    Passes("joblib.delayed", (0, "function")),
)

_PYTHON: tuple[Row, ...] = (
    *(
        Calls(f"builtins.{name}", (NOWHERE, "key"), passes=(Each((0, "iterable")),), often=True)
        for name in ("sorted", "min", "max")
    ),
    Calls(
        "functools.reduce",
        (0, "function"),
        passes=(Each((1, "iterable")), Each((1, "iterable"))),
        gives=What.RESULT,
        often=True,
    ),
    Calls("atexit.register", (0, "func"), after=1),
    Calls("signal.signal", (1, "handler"), passes=(None, None), often=True),
    *each(Calls, ("timeit",), "timeit repeat Timer", function=(0, "stmt"), often=True),
)

_HOOKS = "register_forward_hook register_forward_pre_hook register_full_backward_hook register_backward_hook"

_TORCH: tuple[Row, ...] = (
    *each(
        Calls,
        ("torch.optim.lr_scheduler",),
        "LambdaLR MultiplicativeLR",
        function=(1, "lr_lambda"),
        passes=(Role.NUMBER,),
        often=True,
    ),
    *(
        row
        for name in "torch.utils.data.DataLoader torch.utils.data.dataloader.DataLoader".split()
        for row in (
            Calls(name, (6, "collate_fn"), passes=(Items((0, "dataset")),), often=True),
            Calls(name, (10, "worker_init_fn"), passes=(Role.NUMBER,), often=True),
        )
    ),
    *(
        Calls(name, (NOWHERE, "collate_fn"), passes=(Items((0, "dataset")),), often=True)
        for name in "monai.data.DataLoader torchdata.stateful_dataloader.StatefulDataLoader".split()
    ),
    Calls("torchvision.transforms.Lambda", (0, "lambd"), passes=(None,), often=True),
    Calls("torch.utils.checkpoint.checkpoint", (0, "function"), after=1, gives=What.RESULT),
    Calls("torch.func.functional_call", (0, "module"), rest=(2, "args"), keywords=(3, "kwargs"), gives=What.RESULT),
    *each(Calls, ("torch.func",), "grad grad_and_value jacrev jacfwd hessian vjp jvp", function=(0, "func")),
    *each(Calls, ("torch.autograd.functional",), "jacobian hessian vjp jvp vhp hvp", function=(0, "func")),
    *each(Passes, ("torch", "torch.func"), "vmap", argument=(0, "func")),
    Calls("<model>.apply", (0, "fn"), passes=(None,), often=True),
    *each(Calls, ("<model>",), _HOOKS, function=(0, "hook"), passes=(None,) * 3, often=True),
    *each(Calls, ("<tensor>", "<parameters>", "<samples>", "<statistic>"), "register_hook", passes=(None,), often=True),
)

#: Searches and sweeps, which call a function with settings of their own.
_SEARCHES: tuple[Row, ...] = (
    *each(
        Calls,
        ("optuna", "optuna.study"),
        "create_study().optimize load_study().optimize",
        function=(0, "func"),
        passes=(None,),
        often=True,
    ),
    *each(Calls, ("ray.tune",), "run", function=(0, "run_or_experiment"), passes=(Role.HOLDER,), often=True),
    *each(Calls, ("ray.tune",), "Tuner", function=(0, "trainable"), passes=(Role.HOLDER,), often=True),
    *each(Passes, ("ray.tune",), "with_parameters with_resources", argument=(0, "trainable")),
    Calls("wandb.agent", (1, "function"), often=True),
    Calls("hyperopt.fmin", (0, "fn"), passes=(None,), often=True),
)

_OPTIONS = ("click.option", "click.argument")

_COMMAND_LINES: tuple[Row, ...] = (
    Calls("fire.Fire", (0, "component")),
    Calls("typer.run", (0, "function")),
    Calls("absl.app.run", (0, "main"), passes=(None,)),
    Enters("hydra.main", (Role.HOLDER,)),
    *each(Enters, ("pyrallis", "draccus"), "wrap", passes=(Role.HOLDER,)),
    *each(Enters, ("click",), "command group", options=_OPTIONS),
    Enters("<function>.command", options=_OPTIONS),  # of what `click.group` decorates
    *each(Enters, ("typer.Typer()",), "command callback"),
    *each(Enters, ("sacred.Experiment()",), "main automain command"),
)

ROWS = (*_PROCESSES, *_WORKERS, *_PYTHON, *_TORCH, *_SEARCHES, *_COMMAND_LINES)

#: What calls a function with what the command line says.
COMMAND_LINES = frozenset(row.name for row in _COMMAND_LINES if isinstance(row, Calls))
#: Of these what fills the parameters of a function from there, each by its name.
TELLING = frozenset("fire.Fire typer.run typer.Typer().command typer.Typer().callback".split())
#: What calls a method by a name that it is given.
BY_NAME = "builtins.getattr"
#: What runs a function in another process or thread.
BESIDE = frozenset(row.name for row in (*_PROCESSES, *_WORKERS) if isinstance(row, Calls))
#: Of these what runs it in other processes, which fill nothing of this one, and waits for what it gives, in order.
IN_ORDER = frozenset(
    f"{pool}.{name}"
    for pool in _POOLS + _EXECUTORS
    for name in ("map", "starmap", "imap", "apply")
    if "Thread" not in pool
)
#: What calls a function with settings that nobody else knows.
CHOOSING = frozenset(row.name for row in _SEARCHES if isinstance(row, Calls))
