"""Streams that are seeded anew right before something is drawn from them: all processes draw the same.

    for epoch in range(9):
        set_seed(42 + epoch)                      # a function of the project's own, or the library's
        order = torch.randperm(len(data))

It must be the stream that is drawn from, the seed must be the same on all processes, and nothing between the two may
take another number of draws on one process than on another: a training, a pass over a loader.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.analysis.syntax import LOOPS, arguments, writes
from migrate.analysis.units import Function
from migrate.programs.chance.seeds import is_given
from migrate.programs.reach.callees import entered, reached
from migrate.programs.values.always import holds_by_default

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.processes.sameness import Sameness

_DEEPEST = 4  # calls that lead to a draw, or to a seed


def is_seeded_again(
    facts: Facts, loops: Loops, sameness: Sameness, node: ast.AST, libraries: Collection[str], depth: int = _DEEPEST
) -> bool:
    """Whether on every way to a draw its streams are seeded alike, with nothing in between that parts them."""
    missing = set(libraries)
    for statement in _before(facts, loops, node):
        missing -= {library for library in missing if _seeds(facts, sameness, statement, library)}
        if not missing:
            return bool(libraries)
        if _parts(facts, loops, statement):
            return False
    unit = facts.unit(node)
    around = facts.tree(node).loops(node)
    if not isinstance(unit, Function) or not depth or any(_parts(facts, loops, loop) for loop in around):
        return False
    calls = facts.callers(unit)
    return bool(calls) and all(
        call.handed is None and is_seeded_again(facts, loops, sameness, call.node, missing, depth - 1) for call in calls
    )


def _before(facts: Facts, loops: Loops, node: ast.AST) -> Iterator[ast.stmt]:
    """The statements of the same function that are run before a node in every case, the last of them first.

    A loop that trains or goes over a loader ends them: in its next round that came in between.
    """
    tree = facts.tree(node)
    inner: ast.AST = tree.statement(node)
    while isinstance(inner, ast.stmt) and not (isinstance(inner, LOOPS) and _parts(facts, loops, inner)):
        block = tree.block(inner)
        yield from reversed(block[: next(index for index, each in enumerate(block) if each is inner)])
        inner = tree.parents[inner]
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return


def _seeds(
    facts: Facts, sameness: Sameness, statement: ast.stmt, library: str, given: Collection[str] = (), depth: int = 2
) -> bool:
    """Whether a statement seeds a stream with what is the same on all processes.

    `given`: the parameters of the function around it, in which all processes are given the same.
    """
    if isinstance(statement, ast.If) and holds_by_default(facts, statement.test):
        return any(_seeds(facts, sameness, each, library, given, depth) for each in statement.body)
    call = getattr(statement, "value", None)
    if not isinstance(statement, (ast.Expr, ast.Assign)) or not isinstance(call, ast.Call) or not is_given(call):
        return False
    if not all(_is_alike(sameness, each, given) for each in arguments(call)):
        return False
    if facts.called(call) & (known.SEEDS[library] | known.SEEDS_ALL):
        return True
    targets = facts.targets(call) if depth else ()
    if len(targets) != 1 or isinstance(targets[0].node, ast.Lambda):
        return False
    body = targets[0].node.body
    own = set(targets[0].parameter_names) - set().union(*map(writes, body))
    return any(_seeds(facts, sameness, each, library, own, depth - 1) for each in body)


def _is_alike(sameness: Sameness, node: ast.expr, given: Collection[str]) -> bool:
    """Whether an expression is the same on all processes, or made of such parameters and of constants."""
    names = [inner for inner in ast.walk(node) if not isinstance(inner, (ast.Constant, ast.BinOp, ast.operator))]
    of_given = [inner for inner in names if not isinstance(inner, ast.expr_context)]
    return sameness.same(node) or all(isinstance(each, ast.Name) and each.id in given for each in of_given)


def _parts(facts: Facts, loops: Loops, statement: ast.stmt) -> bool:
    """Whether a statement trains, or goes over a loader: the processes may draw another number of times there."""
    inside = list(ast.walk(statement))
    units = reached(facts, entered(facts, statement))
    return (
        any(map(loops.trains, inside))
        or any(isinstance(each, LOOPS) and loops.loaders(each) for each in inside)
        or any(unit in units and loops.loaders(loop) for loop, unit in facts.loops)
    )
