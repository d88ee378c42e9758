"""Where an evaluation loop calls its model for the last time, on each way through its body.

    for x, y in loader:
        x = x.float()                          # before
        if amp:
            with torch.autocast("cuda"):
                output = model(x)              # the statement, on one way
        else:
            output = model(x)                  # and on the other
        correct += (output.argmax(1) == y)     # later, on both

Right below it the rows are gathered.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, ROWS, Role, roles
from migrate.analysis.syntax import arguments, walk
from migrate.programs.evaluation.apart import takes_rows
from migrate.programs.evaluation.fixed_rows import shapes
from migrate.programs.evaluation.judging import is_model_call
from migrate.programs.evaluation.one_row import squeezes
from migrate.programs.values.results import has_fields, is_one_number, is_tuple_of_more

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


class NotShared(Exception):
    """The loop cannot be shared out; the argument says why."""


@dataclass(frozen=True, slots=True)
class Forward:
    """The last statement of a way that calls a model, what stands before it in the loop, and what after."""

    statement: ast.stmt
    before: list[ast.stmt]
    later: list[ast.stmt]
    branching: ast.If | None = None  # the first branch of the way, where there are others
    unnamed: ast.Call | None = None  # the call, where its result has no name of its own

    def without(self, late: Sequence[ast.stmt]) -> Forward:
        """The same where some statements before it come after it."""
        return replace(self, before=[each for each in self.before if each not in late], later=[*late, *self.later])

    @property
    def inside(self) -> set[int]:
        """What that call is made of (by `id`): it is computed before the gather."""
        return {id(node) for node in ast.walk(self.unnamed)} if self.unnamed is not None else set()

    @property
    def ends_branch(self) -> bool:
        """Whether nothing comes after it in its branch."""
        branch = set[ast.AST](walk(self.branching)) if self.branching is not None else set()
        return not any(each in branch for each in self.later if each is not self.statement)


def forwards(facts: Facts, loop: LoopFact, calls: Sequence[ast.Call]) -> list[Forward]:
    """The ways through the body of a loop that comes to calls of models, of which it has some; one without branches.

    Raises:
        NotShared: it may come to none of them, or their results can neither be gathered nor be given names.
    """
    calling = {facts.tree(call).statement(call) for call in calls}
    found = _ways(facts, loop.node.body, calling)
    return [
        _named(facts, forward, [c for c in calls if facts.tree(c).statement(c) is forward.statement])
        for forward in found
    ]


def looks_at_batch(facts: Facts, node: ast.AST) -> bool:
    """Whether something that was computed from a batch is read."""
    names = (inner for inner in ast.walk(node) if isinstance(inner, (ast.Name, ast.Attribute)))
    return any(roles(facts.values(name)) & FROM_LOADER for name in names)


def is_plain(target: ast.expr) -> bool:
    """Whether nothing but names is given values."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(is_plain(element) for element in target.elts)
    return isinstance(target, ast.Name)


def _ways(facts: Facts, block: list[ast.stmt], calling: set[ast.stmt]) -> Iterator[Forward]:
    """The ways from the beginning of a block to its end."""
    last = next((each for each in reversed(block) if any(node in calling for node in walk(each))), None)
    inner = [] if last is None else _inner(facts, last)
    if last is None or (last not in calling and not inner):
        line = max(statement.lineno for statement in calling)
        raise NotShared(f"the model is called inside another block at line {line}")
    position = block.index(last)
    before, later = block[:position], block[position + 1 :]
    if last in calling:
        yield Forward(last, before, later)
        return
    branching = last if isinstance(last, ast.If) else None
    for way in (way for each in inner for way in _ways(facts, each, calling)):
        yield replace(way, before=before + way.before, later=way.later + later, branching=branching or way.branching)


def _inner(facts: Facts, statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks of a statement of which one is run, once; none where it may be none of them, or several times."""
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [statement.body]
    is_either = isinstance(statement, ast.If) and statement.orelse and not looks_at_batch(facts, statement.test)
    return [statement.body, statement.orelse] if is_either and isinstance(statement, ast.If) else []


#: Inside these a call may run several times, or not at all.
_CONDITIONAL = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _named(facts: Facts, forward: Forward, calls: list[ast.Call]) -> Forward:
    call = _unnamed(facts, forward.statement, calls, forward.before)
    return forward if call is None else replace(forward, unnamed=call, later=[forward.statement, *forward.later])


def _unnamed(facts: Facts, statement: ast.stmt, calls: list[ast.Call], before: list[ast.stmt]) -> ast.Call | None:
    """The model's call if its result is used at once; None if the statement gives the result names.

    Raises:
        NotShared: the result can neither be gathered under its names nor be given one.
    """
    inside = (node for node in ast.walk(statement) if isinstance(node, ast.Call) and is_model_call(facts, node))
    is_judged = any(call not in calls for call in inside)
    if isinstance(statement, ast.Assign) and not is_judged and all(is_plain(target) for target in statement.targets):
        found = roles(facts.values(statement.value))
        nodes = ast.walk(statement.value)
        is_whole = any(squeezes(node) or shapes(facts, node, before) or takes_rows(facts, node) for node in nodes)
        if found & ROWS and Role.STATISTIC not in found and not is_whole:
            return None
    tree = facts.tree(statement)
    if len(calls) != 1 or not isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
        raise NotShared(f"the statement at line {statement.lineno} does more than call the model")
    parent = tree.parents[calls[0]]
    if any(isinstance(above, _CONDITIONAL) for above in tree.up(calls[0]) if above is not statement):
        raise NotShared(f"the model's call at line {statement.lineno} is part of a condition or a comprehension")
    if any(Role.STATISTIC in roles(facts.values(given)) for given in arguments(calls[0])):
        raise NotShared(f"what the model is given at line {statement.lineno} has no row for each sample")
    if has_fields(facts, calls[0]):
        raise NotShared(f"the model's result at line {statement.lineno} has fields; not all of them may have rows")
    if isinstance(parent, ast.Subscript) and is_tuple_of_more(facts, calls[0], [calls[0]]):
        raise NotShared(f"the model's result at line {statement.lineno} may hold a loss beside rows")
    if is_one_number(facts, calls[0]):
        raise NotShared(f"what is called at line {statement.lineno} gives one number for the whole batch")
    if Role.CRITERION in roles(facts.values(calls[0].func)):  # `criterion = nn.MSELoss() if args.l2 else Focal()`
        raise NotShared(f"what is called at line {statement.lineno} may be a loss function, which gives no rows")
    return calls[0]
