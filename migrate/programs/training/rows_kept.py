"""What keeps rows over the steps, of samples or of classes, and has a loss computed from them: `targets[index] = ...`.

Each process fills those of its own batches: what another one has put in stays as it was there. So it is in a loop, in
functions that the loss comes from, in the `forward` of a loss (temporal ensembling, memory banks, prototypes), and in
what this applies, `Average.apply(x, index, self.memory)`, whose backward fills them. What the trained model has in
buffers (queues of keys) all processes have from the main one.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, origins
from migrate.analysis.syntax import root_name, walk, writes
from migrate.analysis.texts import text_of
from migrate.analysis.units import Class, Function
from migrate.programs.reach.forwards import is_own_object, with_own_methods
from migrate.programs.training.loss_parts import LossParts
from migrate.programs.values.accumulators import holds_own

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact

#: Methods of a tensor that put rows where an index says, which comes second, and those that empty it.
_BY_INDEX = frozenset({"index_copy_", "index_add_"})
_EMPTIES = frozenset({"zero_", "fill_"})
_OPERATION = "torch.autograd.Function"
_ADDS = frozenset({"add_", "addcmul_", "lerp_"})  # to what a tensor holds already


def rows_kept(facts: Facts, loop: LoopFact, models: Collection[ast.AST]) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of a training loop, and of what its loss comes from, that fill such rows, with what holds them."""
    parts = LossParts(facts, loop, models)
    each = parts.each()
    read = {text_of(part) for part in each if isinstance(part, (ast.Name, ast.Attribute))}
    for statement, place, index in _filled(walk(loop.node)):
        given = origins(facts.values(index), *FROM_LOADER) & loop.loaders or _goes_on(facts, loop, statement, place)
        if given and text_of(place) in read and not _is_set_anew(walk(loop.node), place):
            yield statement, text_of(place)
    yield from _in_data(facts, loop)
    units = {unit: None for part in each if isinstance(part, ast.Call) for unit in parts.entered(part)}
    for unit in units:
        yield from _by_operation(facts, unit)
        for statement, place, index in _filled(facts.own(unit)):
            is_kept = unit.itself is not None and root_name(place) == unit.itself.arg and _is_handed(unit, index)
            if is_kept and text_of(place) in read and not _is_set_anew(facts.own(unit), place):
                yield statement, text_of(place)


def _in_data(facts: Facts, loop: LoopFact) -> Iterator[tuple[ast.stmt, str]]:
    """What a step puts into the rows of the data set, of which later batches are: `data.weights[index] = losses`."""
    sets = {value.origin for loader in loop.loaders for value in facts.over(loader)} - {None}

    def is_data(node: ast.expr) -> bool:
        return any(value.origin in sets and value.role not in FROM_LOADER for value in facts.values(node))

    for statement, place, index in _filled(walk(loop.node)):
        is_own = holds_own(facts, loop, index) or holds_own(facts, loop, statement)
        if is_own and isinstance(place, ast.Attribute) and is_data(place.value):
            yield statement, text_of(place)
    for call in walk(loop.node).of(ast.Call):
        if isinstance(call.func, ast.Attribute) and holds_own(facts, loop, call) and is_data(call.func.value):
            for unit in facts.targets(call):
                for statement, place, index in _filled(facts.own(unit)):
                    is_kept = unit.itself is not None and root_name(place) == unit.itself.arg
                    if is_kept and _is_handed(unit, index):
                        yield statement, text_of(place)


def _goes_on(facts: Facts, loop: LoopFact, statement: ast.stmt, place: ast.expr) -> bool:
    """`centers[c] += rows[y == c].mean(0)`: made of what a row was and of a batch, or of one at times."""
    if not isinstance(statement, (ast.Assign, ast.AugAssign)) or not holds_own(facts, loop, statement.value):
        return False
    is_own = any(isinstance(n, ast.expr) and text_of(n) == text_of(place) for n in walk(statement.value))
    around = itertools.takewhile(lambda above: above is not loop.node, facts.tree(statement).up(statement))
    return is_own or isinstance(statement, ast.AugAssign) or any(isinstance(above, ast.If) for above in around)


def _by_operation(facts: Facts, unit: Function) -> Iterator[tuple[ast.stmt, str]]:
    """The statements that fill rows of what a loss keeps, in operations that it applies, which have own backwards."""
    for call in (node for node in facts.own(unit) if isinstance(node, ast.Call)):
        for cls in _operations(facts, unit, call):
            found = [member.unit for name in ("forward", "backward") for member in cls.lookup(name)]
            methods = [method for method in found if isinstance(method, Function)]
            given = dict(zip(methods[0].parameter_names[1:], call.args, strict=False)) if methods else {}
            kept = {
                name for name, arg in given.items() if isinstance(arg, ast.Attribute) and is_own_object(unit, arg.value)
            }
            for statement, place, index in (each for method in methods for each in _filled(facts.own(method))):
                name = _last(place)
                if name in kept and {_last(node) for node in walk(index)} & given.keys():
                    yield statement, ast.unparse(given[name])


def _operations(facts: Facts, unit: Function, call: ast.Call) -> Iterator[Class]:
    """The classes on top of `torch.autograd.Function` that a call applies; a `forward` need not have been run."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "apply":
        applied = call.func.value
        values = facts.values(applied)
        if not values and isinstance(applied, ast.Name):
            values = unit.module.names.get(applied.id, frozenset())
        classes = (value.unit for value in values if isinstance(value.unit, Class))
        yield from (cls for cls in classes if any(base.endswith(_OPERATION) for base in cls.library_bases()))


def _last(node: ast.AST) -> str:
    """`memory` of `memory` and of `ctx.memory`."""
    return ast.unparse(node).rpartition(".")[2]


def rows_inside(facts: Facts, forwards: Iterable[Function]) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of models that put what they have computed into rows of a buffer, or add it, with the buffer."""
    for forward in forwards:
        units = with_own_methods(facts, forward)
        for unit in units:
            for statement, place, index in _filled(facts.own(unit)):
                is_row = any(isinstance(node, ast.Name) for node in walk(index))
                is_own = isinstance(place, ast.Attribute) and is_own_object(unit, place.value)
                is_buffer = is_own and ast.unparse(place).rpartition(".")[2] in _buffers(facts, unit)
                if is_row and is_buffer and not any(_is_set_anew(facts.own(each), place) for each in units):
                    yield statement, ast.unparse(place)
            buffers = _buffers(facts, unit)
            yield from ((node, name) for node, name in _summed(facts, unit) if name.rpartition(".")[2] in buffers)


def _summed(facts: Facts, unit: Function) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of a method that add something of its own to what the object keeps: counts, moving averages."""
    own = {binding.target for binding in facts.bindings_in(unit)} | {*unit.parameter_names[1:]}
    own |= {n.id for n in facts.own(unit).of(ast.Name) if isinstance(n.ctx, ast.Store)}
    for node in facts.own(unit):
        added: list[ast.expr] = []
        place: ast.expr
        match node:
            case ast.AugAssign(target=place, op=ast.Add(), value=value):
                added = [value]
            case ast.Assign(targets=[place], value=value):
                is_added = text_of(place) in (text_of(n) for n in walk(value).of(ast.Attribute))
                added = [value] if is_added else []
            case ast.Expr(value=ast.Call() as call):
                added, place = _in_place(call)
            case _:
                continue
        names = {n.id for each in added for n in walk(each).of(ast.Name)}
        if names & own and isinstance(place, ast.Attribute) and is_own_object(unit, place.value):
            yield node, text_of(place)


def _in_place(call: ast.expr) -> tuple[list[ast.expr], ast.expr]:
    """What `self.size.data.mul_(decay).add_(count)` adds, and to what."""
    added: list[ast.expr] = []
    while isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        if call.func.attr in _ADDS:
            added += call.args
        call = call.func.value
    return added, call.value if isinstance(call, ast.Attribute) and call.attr == "data" else call


def _buffers(facts: Facts, unit: Function) -> set[str]:
    """What the class of a method registers as buffers under names that are written out."""
    made = unit.owner.lookup("__init__") if isinstance(unit.owner, Class) else ()
    nodes = (node for member in made if isinstance(member.unit, Function) for node in facts.own(member.unit))
    calls = (node for node in nodes if isinstance(node, ast.Call) and node.args)
    named = (c.args[0] for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "register_buffer")
    return {name.value for name in named if isinstance(name, ast.Constant) and isinstance(name.value, str)}


def _filled(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.stmt, ast.expr, ast.expr]]:
    """The statements that put something into rows, what holds these, and which are meant; not the first so many."""
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Subscript(value=place, slice=index)]):
                found = place, index
            case ast.AugAssign(target=ast.Subscript(value=place, slice=index)):
                found = place, index
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=place, attr=name), args=[_, index, *_])):
                found = place, index
                if name not in _BY_INDEX:
                    continue
            case _:
                continue
        if not (isinstance(found[1], ast.Slice) and found[1].lower is None):
            yield node, *found


def _is_handed(unit: Function, index: ast.expr) -> bool:
    """Whether a function is told by its caller which rows are meant."""
    names = {node.id for node in walk(index) if isinstance(node, ast.Name)}
    return bool(names & set(unit.parameter_names))


def _is_set_anew(nodes: Iterable[ast.AST], place: ast.expr) -> bool:
    """Whether each step begins with another one: `matrix = torch.zeros(8, 2)`, `self.matrix.zero_()`, a batch."""
    name = ast.unparse(place)
    for node in nodes:
        if isinstance(node, (ast.For, ast.AsyncFor)) and root_name(place) in writes(node.target):
            return True
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            read = {ast.unparse(n) for n in walk(node.value) if isinstance(n, (ast.Name, ast.Attribute))}
            if name in map(ast.unparse, targets) and name not in read:
                return True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _EMPTIES:
            if ast.unparse(node.func.value) == name:
                return True
    return False
