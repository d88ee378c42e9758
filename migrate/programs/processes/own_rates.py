"""Rates that each process would have for itself: gradients are shared, and what is done with them is not."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import walk
from migrate.programs.processes.agreement import agreements
from migrate.programs.processes.clocks import is_drawn, own_test
from migrate.programs.processes.replicas import chance, learning_rates, told_of
from migrate.programs.program import Refusal
from migrate.programs.values.fillings import Fillings
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program


def set_by_chance(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Over a loader: rates that each process draws or measures for itself, where an optimizer is made or told them."""
    if not program.training_loaders:
        return
    made = [o for named in program.optimizers for o in named.origins if isinstance(o, ast.Call)]
    given: list[tuple[ast.AST, ast.expr]] = [
        (call, part) for call in made for part in (*call.args[1:], *(keyword.value for keyword in call.keywords))
    ]
    given += [(statement, statement.value) for statement in learning_rates(facts, program)]
    for node, part in given:
        if roles(facts.values(part)) & {Role.PARAMETERS, Role.MODEL} or (own := own_test(facts, program, part)) is None:
            continue
        if own not in _behind(facts, part, _DEEPEST):
            continue  # it came from a container, of which something else may be another on each process
        if any(own in walk(each.test) for each in agreements(facts, loops, program)):
            continue
        what = f"what the processes train with is set by {ast.unparse(part)}"
        missing = chance(facts, loops, program) if program.one_seed is None and is_drawn(facts, own) else []
        if missing:
            told, way = told_of(missing)
            yield Refusal(node, "MIG122", f"{what}, which may differ between processes ({told})", way)
        elif not is_drawn(facts, own):
            why = f"{what}, which a clock or the system gives: each has another"
            yield Refusal(node, "MIG122", why, "set it by a number of steps, or by an option")


_DEEPEST = 4  # names, items and calls between a rate and what it is drawn by


def _behind(facts: Facts, node: ast.AST, depth: int) -> Iterator[ast.AST]:
    """What a value is computed from, through names and items that are written out."""
    if not depth or isinstance(node, ast.Dict):
        return
    yield node
    given: tuple[ast.expr, ...] = ()
    if isinstance(node, ast.Subscript):
        given = tuple(facts.once(Fillings).items(node))
    elif isinstance(node, (ast.Name, ast.Attribute, ast.Call)):
        given = facts.once(Sources).given(node).expressions
    for each in given:
        yield from _behind(facts, each, depth - 1)
    is_whole = isinstance(node, (ast.Subscript, ast.Attribute))
    for child in [] if is_whole else ast.iter_child_nodes(node):
        is_method = isinstance(node, ast.Call) and child is node.func and isinstance(child, ast.Attribute)
        yield from _behind(facts, child.value if is_method and isinstance(child, ast.Attribute) else child, depth)
