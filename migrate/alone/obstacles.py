"""What a program does with its processes that one process does not do the same way: it is left to a person."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.by_hand import computed_shares, lost_shares, shares, turns
from migrate.alone.calls import BROADCAST, GATHERS, REDUCTIONS, SAME
from migrate.analysis.known import distributed
from migrate.analysis.units import Function
from migrate.programs.program import Refusal
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.dealing import Dealing
    from migrate.alone.gatherings import Gatherings
    from migrate.alone.sums import Sums
    from migrate.alone.world import World
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_MODULES = ("torch.distributed", "torch.distributed.distributed_c10d")
_OWN_WAYS = frozenset(
    f"{module}.{name}"
    for module in _MODULES
    for name in """new_group send recv isend irecv batch_isend_irecv scatter gather all_to_all all_to_all_single
    reduce_scatter reduce_scatter_tensor broadcast_object_list gather_object scatter_object_list
    all_gather_into_tensor""".split()
)
_OTHERS = {
    **dict.fromkeys(distributed.RPC, "the program uses RPC"),
    **dict.fromkeys(distributed.SHARDING, "the program shards its model with FSDP"),
    **dict.fromkeys(distributed.PIPELINES, "the program is pipeline parallel"),
    **dict.fromkeys(distributed.TENSOR_PARALLEL, "the program is tensor parallel"),
    **dict.fromkeys(distributed.DEEPSPEED, "DeepSpeed runs the loop"),
    **{name: f"{library} joins the processes" for name, library in distributed.LIBRARIES.items()},
}
#: What a function that stays must not do beside an accelerator, by the calls that do it.
_BESIDE = {
    "exchanges what the processes have computed": REDUCTIONS | GATHERS | _OWN_WAYS,
    "joins the processes to a group": distributed.PROCESS_GROUPS,
}


def obstacles(world: World, sums: Sums, dealing: Dealing, gatherings: Gatherings) -> Iterator[Refusal]:
    """Why the modules cannot be made ready; what is computed of a rank says so where nothing plainer does."""
    plain = list(_plain(world, sums, dealing, gatherings))
    yield from plain
    if not plain and not sums.stay:
        yield from computed_shares(world, dealing, sums)


def _plain(world: World, sums: Sums, dealing: Dealing, gatherings: Gatherings) -> Iterator[Refusal]:
    yield from shares(world, dealing, sums)
    if not sums.has_loaders:
        yield from lost_shares(world)
    yield from dealing.obstacles()
    yield from sums.inside()
    yield from _with_gradients(world)
    yield from _out_of_reach(world)
    if not sums.stay:
        yield from turns(world)
    yield from _talking(world, sums, gatherings)


def _talking(world: World, sums: Sums, gatherings: Gatherings) -> Iterator[Refusal]:
    """What processes tell each other, and one process would not have to itself."""
    for use in world.facts.calls_anywhere:
        if use.unit.module not in world.modules or id(use.node) in world.dead or sums.is_settled(use):
            continue
        if world.is_left(use.node) or sums.broadcasts.holds(use.node):
            continue
        if gatherings.holds(use.node) and not sums.stay:
            continue
        names = world.facts.called(use.node)
        name = min(names & (_OWN_WAYS | SAME | GATHERS), default="").rpartition(".")[2]
        if other := next((_OTHERS[n] for n in sorted(names & _OTHERS.keys())), None):
            way_out = "take it out so that the program runs on one device, then run migrate again"
            yield Refusal(use.node, "MIG110", other, way_out)
        elif names & _OWN_WAYS:
            yield _talks(use.node, f"the processes talk to each other in a way of their own ({name})")
        elif names & SAME and _sums_gradients(world, use.node):
            yield _talks(use.node, "gradients are summed up over the processes, and not divided by their number")
        elif names & SAME and not _is_statement(world, use.node):
            yield _talks(use.node, f"what {name} gives back is kept")
        elif names & BROADCAST and not sums.broadcasts.is_state(use.node):
            yield _talks(use.node, "what one process computes is sent to the others (broadcast)")
        elif names & GATHERS:
            yield _talks(use.node, f"what all processes have is gathered ({name})")


def _with_gradients(world: World) -> Iterator[Refusal]:
    """`dist.all_reduce(mean)` in a `torch.autograd.Function`, under a condition or not: layers compute by it."""
    for use in world.facts.calls_anywhere:
        owner = use.unit.owner if isinstance(use.unit, Function) and use.unit.module in world.modules else None
        if owner is None or not any(base.startswith("torch.autograd.") for base in owner.library_bases()):
            continue
        if names := world.facts.called(use.node) & (_OWN_WAYS | SAME | GATHERS):
            name = min(names).rpartition(".")[2]
            yield _talks(use.node, f"{name} is a part of what {owner.name} computes, with gradients of its own")


def _out_of_reach(world: World) -> Iterator[Refusal]:
    """`utils.reduce_sum(loss)`, where utils was not named: it would go on adding up what is added up already.

    `utils.init_distributed(args)` would make a group of processes where the accelerator has made one.
    """
    found: dict[Function, str] = {}
    for use in world.facts.calls_anywhere:
        if use.unit.module not in world.modules or id(use.node) in world.dead or world.is_left(use.node):
            continue
        for unit in world.facts.targets(use.node):
            if world.facts.is_editable(unit):
                continue
            if unit not in found:
                found[unit] = _of_processes(world.facts, unit)
            if found[unit]:
                path = unit.module.path
                why = f"{unit.name}() {found[unit]}, and {path} was not named"
                yield Refusal(use.node, "MIG904", why, f"name {path} as well", (path,))


def _of_processes(facts: Facts, unit: Unit) -> str:
    """What a function, or one that it calls, does with the processes that must not be done beside an accelerator."""
    calls = (node for each in reached(facts, [unit]) for node in facts.own(each) if isinstance(node, ast.Call))
    names = {name for call in calls for name in facts.called(call)}
    return next((what for what, those in _BESIDE.items() if names & those), "")


def _talks(node: ast.AST, why: str) -> Refusal:
    way_out = "take it out, run migrate again, and write it with accelerator.gather or accelerator.reduce by hand"
    return Refusal(node, "MIG113", why, way_out)


def _sums_gradients(world: World, call: ast.Call) -> bool:
    """`all_reduce(p.grad)` without a division: prepare makes the mean of all processes."""
    if not any(isinstance(n, ast.Attribute) and n.attr == "grad" for given in call.args[:1] for n in ast.walk(given)):
        return False
    if any(ast.unparse(given).endswith(".AVG") for given in (*call.args[1:], *(k.value for k in call.keywords))):
        return False
    unit = world.facts.tree(call).function(call)
    return not any(
        (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Div) and world.is_size(n.right))
        or (isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Div) and world.is_size(n.value))
        or (_is_scaled(n) and any(isinstance(e, ast.expr) and world.is_size(e) for e in ast.walk(n)))
        for n in ast.walk(unit)
    )


def _is_scaled(node: ast.AST) -> bool:
    """`p.grad.div_(n)`, `p.grad.mul_(1 / n)`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("div_", "mul_")


def _is_statement(world: World, call: ast.Call) -> bool:
    return isinstance(world.facts.tree(call).parents[call], ast.Expr)
