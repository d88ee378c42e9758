"""Data and work that a program shares out over its processes by hand: `files[rank::n]`, `for i in range(rank, 100, n)`.

prepare shares the data out over the processes, so what has been shared out above would be shared out again, and what
the processes did by turns is joined by no accelerator. The rank is followed through what is computed of it, through
variables, and into the functions of the project that are handed it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.bars import is_only_shown
from migrate.alone.quantities import RANKS
from migrate.analysis.known import distributed
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import LOOPS, loads
from migrate.analysis.units import Function
from migrate.programs.program import Refusal
from migrate.programs.values.handed_as import handed_as

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.dealing import Dealing
    from migrate.alone.sums import Sums
    from migrate.alone.world import World

_DATA = "the program shares its data out over the processes by hand, by rank"
_WORK = "the program shares its work out over the processes by hand, by rank"
_MAKE_ALL = "let every process make all of the data, then run migrate again"
_DO_ALL = "let every process do all of it, then run migrate again"
#: What makes of a number of the rank another one, or the numbers from it on.
_COMPUTING = frozenset("int min max abs round range list tuple slice sorted set".split())
_COMPUTING_OF_LIBRARIES = frozenset("math.ceil math.floor numpy.arange torch.arange numpy.ceil numpy.floor".split())
_DEEPEST = 6  # variables, one made of the other


def shares(world: World, dealing: Dealing, sums: Sums) -> Iterator[Refusal]:
    """`Data(rank, world_size)`, `files[rank::world_size]`."""
    for node in _ranks(world):
        is_shared = _is_given(world, node) or _is_taken(world, node, sums) or _is_in_data(world, node)
        if is_shared and not _stays(world, node, dealing) and not is_only_shown(world, node):
            yield Refusal(node, "MIG113", _DATA, _MAKE_ALL)


def computed_shares(world: World, dealing: Dealing, sums: Sums) -> Iterator[Refusal]:
    """`rows[first : first + n]`, `for i in range(rank, 100, n)`, with numbers that are computed of the rank."""
    found = {
        place: (why, way_out) for node in _ranks(world) for place, why, way_out in _computed(world, node, dealing, sums)
    }
    said: set[tuple[str, int]] = set()
    for place in sorted(found, key=lambda node: (node.lineno, node.col_offset)):
        if (key := (world.facts.file(place).path, place.lineno)) not in said:
            said.add(key)
            yield Refusal(place, "MIG113", *found[place])


def lost_shares(world: World) -> Iterator[Refusal]:
    """`if world_size > 1: files = files[rank::world_size]`, which nothing would do in place of the branch."""
    for module in world.modules:
        tree = world.facts.tree(module.tree)
        for node in tree.nodes:
            if isinstance(node, ast.Slice) and id(node) in world.dead:
                if any(isinstance(part, ast.expr) and world.quantity(part) in RANKS for part in ast.walk(node)):
                    why = "the program shares its data out over the processes by hand, and no DataLoader would do that"
                    yield Refusal(node, "MIG113", why, "put the data into a DataLoader, then run migrate again")


def turns(world: World) -> Iterator[Refusal]:
    """`if i % world_size != rank: continue`: each process does its part, and the parts are summed up afterwards."""
    for module in world.modules:
        for node in world.facts.tree(module.tree).nodes:
            if not isinstance(node, ast.Compare) or id(node) in world.dead:
                continue
            sides = (node.left, *node.comparators)
            parts = [
                s for s in sides if isinstance(s, ast.BinOp) and isinstance(s.op, ast.Mod) and world.is_size(s.right)
            ]
            is_part = any(world.quantity(part.left) not in RANKS for part in parts)
            if is_part and any(world.quantity(side) in RANKS for side in sides if side not in parts):
                yield Refusal(node, "MIG113", _WORK, _DO_ALL)


# --- the rank itself ------------------------------------------------------------------------------------------------


def _ranks(world: World) -> Iterator[ast.expr]:
    """The expressions that say which of the processes this is."""
    for module in world.modules:
        for node in world.facts.tree(module.tree).nodes:
            if isinstance(node, ast.expr) and id(node) not in world.dead and world.quantity(node) in RANKS:
                if not world.is_left(node):
                    yield node


def _stays(world: World, node: ast.expr, dealing: Dealing) -> bool:
    """Whether a number is handed to, or stands in, a sampler that is told that it is alone."""
    return _taker(world, node) in dealing.calls or dealing.holds(node)


def _taker(world: World, node: ast.expr) -> ast.AST | None:
    """What an expression is handed to, by position or by keyword."""
    tree = world.facts.tree(node)
    parent = tree.parents.get(node)
    return tree.parents.get(parent) if isinstance(parent, ast.keyword) else parent


def _is_given(world: World, node: ast.expr) -> bool:
    """Whether a number is handed to a data set or a sampler, but for those that give way."""
    call = _taker(world, node)
    if not isinstance(call, ast.Call):
        return False
    made = roles(world.facts.values(call)) & {Role.DATASET, Role.SAMPLER}
    return bool(made) and not world.facts.called(call) & distributed.SAMPLERS and not _gives_distributed(world, call)


def _gives_distributed(world: World, call: ast.Call) -> bool:
    """Whether a function of the project makes a DistributedSampler of what it is handed."""
    made = origins(world.facts.values(call), Role.SAMPLER)
    samplers = [origin for origin in made if isinstance(origin, ast.Call)]
    return bool(made) and all(world.facts.called(each) & distributed.SAMPLERS for each in samplers)


def _is_taken(world: World, node: ast.expr, sums: Sums) -> bool:
    """Whether rows are taken by a number, but in the loss of a training, which looks for its own among all."""
    is_index = isinstance(world.facts.tree(node).parents.get(node), (ast.Slice, ast.Subscript))
    return (is_index or _is_chosen_by(world, node)) and not sums.insides.is_of_training(node)


def _is_chosen_by(world: World, node: ast.expr) -> bool:
    """`data.shard(n, rank)`, `islice(rows, rank, None, n)`: whether a call gives the rows that a number says."""
    call = _taker(world, node)
    if not isinstance(call, ast.Call) or call.func is node:
        return False
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in distributed.CHOOSING_METHODS
    return (is_method and not world.facts.targets(call)) or bool(world.facts.called(call) & distributed.CHOOSING)


def _is_in_data(world: World, node: ast.AST) -> bool:
    """Whether code stands in a data set or a sampler."""
    unit = world.facts.unit(node)
    if not isinstance(unit, Function) or unit.owner is None:
        return False
    return bool(world.facts.roles_of_bases(unit.owner) & {Role.DATASET, Role.SAMPLER})


# --- what is computed of it -----------------------------------------------------------------------------------------


def _computed(world: World, node: ast.expr, dealing: Dealing, sums: Sums) -> Iterator[tuple[ast.expr, str, str]]:
    """Where rows are taken, or work is done, by numbers that are computed of a rank."""
    seen: set[ast.AST] = {node}
    unseen = [(made, 0) for made in _made_of(world, node)]
    while unseen:
        made, depth = unseen.pop()
        if made in seen or id(made) in world.dead or _stays(world, made, dealing):
            continue
        seen.add(made)
        if _is_given(world, made) or _is_taken(world, made, sums):
            yield made, _DATA, _MAKE_ALL
        elif _is_gone_over(world, made):
            yield made, _WORK, _DO_ALL
        else:
            unseen += [(each, depth) for each in _made_of(world, made)]
            unseen += [(each, depth + 1) for each in _named(world, made) if depth < _DEEPEST]


def _made_of(world: World, node: ast.expr) -> Iterator[ast.expr]:
    """What is computed of a number at once: `rank * n`, `range(rank, 100, n)`."""
    parent = world.facts.tree(node).parents.get(node)
    match parent:
        case ast.BinOp() | ast.UnaryOp() if world.quantity(parent) not in RANKS:
            yield parent
        case ast.Call() if node in parent.args and _computes(world, parent):
            yield parent


def _computes(world: World, call: ast.Call) -> bool:
    is_builtin = isinstance(call.func, ast.Name) and call.func.id in _COMPUTING and not world.facts.targets(call)
    return is_builtin or bool(world.facts.called(call) & _COMPUTING_OF_LIBRARIES)


def _named(world: World, node: ast.expr) -> Iterator[ast.expr]:
    """The reads of the variable, or the parameter, that a number is given to."""
    tree = world.facts.tree(node)
    parent = tree.parents.get(node)
    if isinstance(parent, ast.Tuple) and isinstance(tree.parents.get(parent), ast.Assign):
        statement = tree.parents[parent]
        for target in statement.targets if isinstance(statement, ast.Assign) else ():
            if isinstance(target, ast.Tuple) and len(target.elts) == len(parent.elts):
                yield from _reads(world, target.elts[parent.elts.index(node)])
    elif isinstance(parent, ast.Assign):
        for target in parent.targets:
            yield from _reads(world, target)
    elif isinstance(call := _taker(world, node), ast.Call):
        for unit in world.facts.targets(call):
            for name in handed_as(call, unit, node):
                yield from loads(unit.node, name)


def _reads(world: World, target: ast.expr) -> Iterator[ast.Name]:
    """Where the scope of a variable reads it."""
    return loads(world.facts.tree(target).function(target), target.id) if isinstance(target, ast.Name) else iter(())


def _is_gone_over(world: World, node: ast.expr) -> bool:
    """Whether a loop, or a comprehension, goes over what begins at a number of the rank."""
    if not isinstance(node, (ast.Call, ast.Name)):
        return False
    parent = world.facts.tree(node).parents.get(node)
    return isinstance(parent, (*LOOPS, ast.comprehension)) and getattr(parent, "iter", None) is node
