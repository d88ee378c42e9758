"""Calls that several processes are for: joining a group, starting processes, wrapping a model, talking."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.world import WRAPPERS
from migrate.analysis.known import distributed
from migrate.analysis.syntax import argument_at
from migrate.programs.marker import ACCELERATOR

if TYPE_CHECKING:
    from migrate.alone.pen import Pen
    from migrate.alone.world import World

_MODULES = ("torch.distributed", "torch.distributed.distributed_c10d")


def _names(text: str) -> frozenset[str]:
    return frozenset(f"{module}.{name}" for module in _MODULES for name in text.split())


#: What joins or leaves a group.
GROUPS = distributed.PROCESS_GROUPS | _names("destroy_process_group")
#: What gives back, in its argument, what one process put in.
SAME = _names("all_reduce reduce broadcast")
SUMS = _names("all_reduce")
REDUCTIONS = _names("all_reduce reduce")
BARRIERS = _names("barrier monitored_barrier")
BROADCAST = _names("broadcast")
TELLING = _names("broadcast broadcast_object_list")
GATHERS = _names("all_gather all_gather_object")
TO_ONE = _names("gather gather_object")
TENSOR_GATHERS = _names("all_gather")
#: What an environment variable is set for, before a group is joined.
_VARIABLES = frozenset(("MASTER_ADDR", "MASTER_PORT", *distributed.ENVIRONMENT))
#: How the variables begin that say how a group's processes talk.
_TALKING = ("NCCL_", "GLOO_", "TORCH_NCCL_", "TORCH_GLOO_", "TORCH_DISTRIBUTED_", "SLURM_", "OMPI_")


def is_of_some(call: ast.Call) -> bool:
    """Whether only a group of processes takes part in a call, or nobody waits for what it gives."""
    asked = (argument_at(call, 2, "group"), argument_at(call, 3, "async_op"))
    return any(given is not None and ast.unparse(given) not in ("None", "False") for given in asked)


def is_idle(world: World, statement: ast.stmt) -> bool:
    """Whether a statement only joins a group, or tells others what one process knows already."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return _sets_variable(world, statement.targets[0]) or _keeps(world, statement)
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return False
    call = statement.value
    names = world.facts.called(call)
    if "os.environ.setdefault" in names and call.args:
        return is_of_group(call.args[0])
    return bool(names & (GROUPS | SAME))


def _sets_variable(world: World, target: ast.expr) -> bool:
    """`os.environ["MASTER_PORT"] = "12355"`."""
    is_set = isinstance(target, ast.Subscript) and "os.environ" in world.facts.names(target.value)
    return is_set and isinstance(target, ast.Subscript) and is_of_group(target.slice)


def is_of_group(name: ast.expr) -> bool:
    """Whether an environment variable of this name is there for processes to find each other, or for how they talk."""
    text = name.value if isinstance(name, ast.Constant) else None
    return isinstance(text, str) and (text in _VARIABLES or text.startswith(_TALKING))


def _keeps(world: World, statement: ast.Assign) -> bool:
    """`model = DDP(model)`: the name keeps its object."""
    value = statement.value
    if not isinstance(value, ast.Call) or (inner := wrapped(world, value)) is None:
        return False
    target = ast.unparse(statement.targets[0])
    return ast.unparse(inner) == target or _holds_already(world, statement, target, ast.unparse(inner))


def _holds_already(world: World, statement: ast.stmt, target: str, model: str) -> bool:
    """Whether `self.model = model.to(rank)` stands above `self.model = DDP(model)`: both are that model."""
    block = world.facts.tree(statement).block(statement)
    above = [s for s in block[: block.index(statement)] if isinstance(s, ast.Assign)]
    given = [s.value for s in above if any(ast.unparse(t) == target for t in s.targets)]
    if not given or any(ast.unparse(t) == model for s in above if s.value in given for t in s.targets):
        return False
    last = given[-1]
    if isinstance(last, ast.Call) and isinstance(last.func, ast.Attribute) and last.func.attr in ("to", "cuda"):
        last = last.func.value
    return ast.unparse(last) == model


def instead(world: World, statement: ast.stmt) -> str | None:
    """What a statement gives way to; None: it stays."""
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
        return None
    call = statement.value
    names = world.facts.called(call)
    if names & BARRIERS:
        return f"{ACCELERATOR}.wait_for_everyone()"
    if names & distributed.LAUNCHERS:
        return _started(call)
    return None


def _started(call: ast.Call) -> str | None:
    """`mp.spawn(worker, args=(a, b), nprocs=n)` becomes `worker(0, a, b)`."""
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    function = call.args[0] if call.args else given.get("fn")
    passed = call.args[1] if len(call.args) > 1 else given.get("args", ast.Tuple([], ast.Load()))
    if function is None or not isinstance(function, (ast.Name, ast.Attribute)):
        return None
    rest = [ast.unparse(e) for e in passed.elts] if isinstance(passed, ast.Tuple) else [f"*{ast.unparse(passed)}"]
    return f"{ast.unparse(function)}({', '.join(['0', *rest])})"


def wrapped(world: World, call: ast.Call) -> ast.expr | None:
    """The model that a call wraps in DistributedDataParallel."""
    if not world.facts.called(call) & WRAPPERS:
        return None
    model = argument_at(call, 0, "module")
    return None if isinstance(model, ast.Starred) else model


def rewrite(world: World, pen: Pen, node: ast.expr) -> list[ast.AST] | None:
    """Take the wrapper off a model, and its `.module`; a gathered list has one element."""
    if isinstance(node, ast.Call) and (model := wrapped(world, node)) is not None:
        pen.rewrite(node, "{model}", model=model)
        return [model]
    if isinstance(node, ast.Attribute) and node.attr == "module" and world.is_wrapped(node.value):
        pen.rewrite(node, "{model}", model=node.value)
        return [node.value]
    return None
