"""Branches on the main process that a program had already, and what becomes of each."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import is_none, jumps, line_of
from migrate.programs.conversion import Conversion, reaches_model
from migrate.programs.marker import LOCAL_MAIN, is_barrier, is_main, is_marked, parts
from migrate.programs.output.supplies import Supplies, handed_reads, place, supplies
from migrate.programs.processes.replicas import has_buffers
from migrate.programs.reach.outsiders import entered_beside_models
from migrate.programs.training.gradients_off import without_gradients
from migrate.programs.values.outputs import is_repeatable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from migrate.analysis.units import Unit


def is_asked(statement: ast.stmt) -> bool:
    """Whether a statement is such a branch."""
    return isinstance(statement, ast.If) and is_marked(statement.test)


def guards(conversion: Conversion) -> Iterator[ast.If]:
    """Every such branch of a program, the outer ones first."""
    facts = conversion.facts
    for module in conversion.modules:
        for node in facts.tree(module.tree).nodes:
            if isinstance(node, ast.If) and parts(node.test) and is_inside(conversion, facts.unit(node.test)):
                yield node


def is_inside(conversion: Conversion, unit: Unit) -> bool:
    """Whether a unit is one of the program's, or stands around the object that makes its accelerator."""
    return unit in conversion.units or unit in conversion.access.around


def keeps(conversion: Conversion, statement: ast.If) -> bool:
    """Whether the body of a branch stays the main process's alone."""
    return is_main(statement.test) and statement not in dissolved(conversion)


def is_left_to_main(conversion: Conversion, node: ast.AST) -> bool:
    """Whether something stands in a branch on the main process that stays, or behind `is_main_process and`."""
    tree = conversion.facts.tree(node)
    inner = node
    for above in tree.up(node):
        if isinstance(above, ast.If) and keeps(conversion, above) and tree.in_block(node, above.body) is not None:
            return True
        if isinstance(above, ast.BoolOp) and isinstance(above.op, ast.And) and inner in above.values:
            if any(map(is_main, above.values[: above.values.index(inner)])):
                return True
        elif isinstance(above, ast.IfExp) and inner is above.body and is_main(above.test):
            return True
        inner = above
    return False


def in_kept(conversion: Conversion) -> set[int]:
    """The nodes (by `id`) of the branches that stay the main process's alone."""
    kept = (guard for guard in guards(conversion) if keeps(conversion, guard))
    return {id(node) for guard in kept for statement in guard.body for node in ast.walk(statement)}


def dissolved(conversion: Conversion) -> frozenset[ast.AST]:
    """The branches that all processes enter: what is in them needs all, or what all do needs what they set."""
    known = conversion.access.dissolved
    if known is None:
        known = conversion.access.dissolved = frozenset(_dissolved(conversion))
    return known


def _dissolved(conversion: Conversion) -> set[ast.If]:
    left = list(guards(conversion))
    found: set[ast.If] = set()
    waiting = [guard for guard in left if is_joint(conversion, guard) or _is_early(conversion, guard)]
    while waiting:
        found.update(waiting)
        left = [guard for guard in left if guard not in found]
        unit = conversion.facts.unit
        needed = _needed(conversion, found).places
        made = {(unit(guard), name) for guard in found for name in _stored(guard.body)}
        asked = {origin for guard in found for origin in _asked(conversion, guard)}
        waiting = [
            guard
            for guard in left
            if any(place(unit(guard), name) in needed for name in _stored(guard.body))
            or any((unit(guard), name) in made for name in _writers_of_machine(conversion, guard))
            or any(node in asked for statement in guard.body for node in ast.walk(statement))
        ]
    return found


def _needed(conversion: Conversion, found: Collection[ast.If]) -> Supplies:
    """What the branches that all enter read, also by the functions that they call, with what gives it its value."""
    facts = conversion.facts
    read = {place(facts.unit(guard), name) for guard in found for name in _read(guard)}
    called = {unit for guard in found for unit in entered_beside_models(facts, guard)}
    return supplies(facts, read.union(*(handed_reads(facts, unit) for unit in called)))


def choices(conversion: Conversion) -> set[ast.IfExp]:
    """`val_loader if accelerator.is_main_process else None`, where all processes read what that gives."""
    found = [guard for guard in guards(conversion) if guard in dissolved(conversion)]
    if not found:  # as in most programs
        return set()
    return {
        choice for choice in _needed(conversion, found).choices if is_inside(conversion, conversion.facts.unit(choice))
    }


def _writers_of_machine(conversion: Conversion, guard: ast.If) -> Iterator[str]:
    """The writers in a branch of each machine's first process: one that is made for all is the main process's alone."""
    if any(isinstance(node, ast.Attribute) and node.attr == LOCAL_MAIN for node in ast.walk(guard.test)):
        for node in (inner for statement in guard.body for inner in ast.walk(statement)):
            if isinstance(node, (ast.Name, ast.Attribute)) and Role.WRITER in roles(conversion.facts.values(node)):
                yield ast.unparse(node)


def _asked(conversion: Conversion, guard: ast.If) -> Iterator[ast.AST]:
    """Where the objects of the project were made that are used in a branch, wherever they come from."""
    facts = conversion.facts
    for node in (inner for statement in (*guard.body, *guard.orelse) for inner in ast.walk(statement)):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            yield from (facts.source(origin) for origin in origins(facts.values(node), Role.INSTANCE))


def _is_early(conversion: Conversion, guard: ast.If) -> bool:
    """Whether nobody can be asked yet, and it does no harm if all do it."""
    return not has_accelerator(conversion, guard) and only_prints(conversion, guard.body)


def _read(guard: ast.If) -> set[str]:
    return {
        ast.unparse(n)
        for s in (*guard.body, *guard.orelse)
        for n in ast.walk(s)
        if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)
    }


def _stored(body: Iterable[ast.stmt]) -> set[str]:
    return {
        ast.unparse(n)
        for s in body
        for n in ast.walk(s)
        if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store)
    }


def stands_in(guard: ast.If) -> bool:
    """Whether the other processes get nothing but `None` for what the main process makes: `else: history = None`."""
    made = _stored(guard.body)
    return all(
        isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and all(ast.unparse(target) in made for target in statement.targets)
        for statement in guard.orelse
    )


def is_one_call(guard: ast.If) -> bool:
    """Whether both branches make one call, in which the other processes have `None` for what the main process has.

    `train(net, [loader, val_loader], writer)`, and `train(net, [loader, None], None)` for the others.
    """
    if len(guard.body) != 1 or len(guard.orelse) != 1:
        return False
    one, other = guard.body[0], guard.orelse[0]
    return isinstance(one, (ast.Expr, ast.Assign)) and is_but_for_none(one, other)


def is_but_for_none(one: ast.AST, other: ast.AST) -> bool:
    """Whether two pieces of code are the same, but that there is `None` in the other for parts of the one."""
    if isinstance(other, ast.expr) and is_none(other):
        return True
    if type(one) is not type(other):
        return False
    parts, others = list(ast.iter_child_nodes(one)), list(ast.iter_child_nodes(other))
    if len(parts) != len(others) or _leaf(one) != _leaf(other):
        return False
    return all(is_but_for_none(part, each) for part, each in zip(parts, others, strict=True))


def _leaf(node: ast.AST) -> list[object]:
    """What a node says itself: a name, an attribute, a constant."""
    return [value for _, value in ast.iter_fields(node) if not isinstance(value, (ast.AST, list))]


def is_joint(conversion: Conversion, statement: ast.If) -> bool:
    """Whether all processes must enter what is in a branch: it runs a prepared model or loader."""
    return any(reaches_model(conversion, inner) for inner in (*statement.body, *statement.orelse))


def only_prints(conversion: Conversion, block: Sequence[ast.stmt]) -> bool:
    """Whether a block does nothing that does harm when several processes do it."""
    return all(
        is_barrier(s)
        or (
            isinstance(s, ast.Expr)
            and isinstance(s.value, ast.Call)
            and (output.PRINT in conversion.facts.called(s.value) or is_repeatable(s.value))
        )
        for s in block
    )


def leaves(conversion: Conversion, guard: ast.If) -> bool:
    """Whether some leave by a `return`, `break` or `continue` in a branch, and miss what all must enter."""
    tree = conversion.facts.tree(guard)
    taken = (jump for block in (guard.body, guard.orelse) for jump in jumps(block))
    return any(_needs_all(conversion, missed) for jump in taken for missed in tree.missed(guard, jump))


def _needs_all(conversion: Conversion, node: ast.stmt) -> bool:
    """Whether all processes must enter code; where nothing deals data out, each may evaluate what is its own."""
    program, facts = conversion.program, conversion.facts
    if not reaches_model(conversion, node):
        return False
    if program.training_loaders or program.evaluation or has_buffers(facts, program) or conversion.loops.trains(node):
        return True
    calls = [inner for inner in ast.walk(node) if isinstance(inner, ast.Call)]
    asked = [call for call in calls if origins(facts.values(call.func), Role.MODEL) & program.model_origins]
    return not asked or not all(without_gradients(facts, call) for call in asked)


def is_made_before(conversion: Conversion, node: ast.AST) -> bool:
    """Whether the accelerator exists where a node runs; it need not be at hand there."""
    with conversion.access.unchanged():
        return has_accelerator(conversion, node)


def has_accelerator(conversion: Conversion, node: ast.AST) -> bool:
    """Whether the accelerator exists where a node runs, and can be brought there."""
    facts, spot = conversion.facts, conversion.placement.accelerator
    if (holder := conversion.access.around.get(facts.unit(node))) is not None:
        return holder.is_there(facts, node)
    if facts.unit(node) is facts.unit(spot.statement):
        line = line_of(node)
        if spot.where == "after":
            return bool(line > (spot.statement.end_lineno or 0))
        return bool(line >= spot.statement.lineno)
    return conversion.access.can_reach(node)
