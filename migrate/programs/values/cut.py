"""Loops that take a number of batches from an iterator which is made anew above them: `for step in range(steps):`.

Nothing begins the iterator again where it ends, so one process has at least as many batches as that number says. Each
of N processes may have fewer.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import TRIES, keyword_of, walk
from migrate.analysis.units import Class, Function
from migrate.programs.values.rounds import rounds
from migrate.programs.values.takes import asked, taken

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value
    from migrate.analysis.syntax import Loop

_DEEPEST = 3  # samplers of samplers
_PLAIN = frozenset({"torch.utils.data.Dataset", "torch.utils.data.IterableDataset", "torch.utils.data.Sampler"})
_ENDLESS = frozenset({"itertools.cycle", "itertools.repeat", "itertools.count"})


@dataclass(frozen=True, slots=True)
class Counted:
    """How many batches such a loop takes, and the loader that they come from, as the code around it names that."""

    number: ast.expr
    loader: ast.expr


def counted_take(facts: Facts, call: ast.Call) -> Counted | None:
    """What a call that takes one batch is to such a loop."""
    tree, taking = facts.tree(call), asked(facts, call)
    loop = next(tree.loops(call), None)
    if not isinstance(loop, ast.For) or taking is None or is_caught(facts, call, loop):
        return None
    number, loader = rounds(facts, loop.iter), _iterated(facts, taking, loop)
    return Counted(number, loader) if number is not None and loader is not None else None


def is_cut(facts: Facts, loop: Loop) -> bool:
    """Whether a loop takes as many batches as a number says, of loaders with a length: no more than those have."""
    calls = (node for node in walk(loop) if isinstance(node, ast.Call) and len(node.args) == 1)
    takes = [call for call in calls if taken(facts, call) and counted_take(facts, call) is not None]
    return any(all(has_length(facts, origin) for origin in taken(facts, call)) for call in takes)


def has_length(facts: Facts, loader: ast.AST) -> bool:
    """Whether a loader has a length and ends after it, as far as its sampler and its data are seen."""
    made = facts.source(loader)
    if not isinstance(made, ast.Call):
        return False
    given = (keyword_of(made, name) for name in ("sampler", "batch_sampler"))
    samplers = [value for keyword in given if keyword is not None for value in facts.values(keyword.value)]
    named = any(keyword_of(made, name) is not None for name in ("sampler", "batch_sampler"))
    if named:
        return bool(samplers) and all(_ends(facts, value, _DEEPEST) for value in samplers)
    data = facts.over(loader)
    return bool(data) and all(_has_size(value) for value in data)


def _ends(facts: Facts, sampler: Value, depth: int) -> bool:
    """Whether a sampler has a length, and no loop without an end."""
    inner = [v for v in facts.over(sampler.origin) if v.role is Role.SAMPLER] if sampler.origin is not None else []
    if not depth or not all(_ends(facts, each, depth - 1) for each in inner):
        return False
    if not isinstance(sampler.unit, Class):
        return sampler.role is Role.SAMPLER
    runs = [value.unit for value in sampler.unit.lookup("__iter__")]
    nodes = [node for unit in runs if isinstance(unit, Function) for node in ast.walk(unit.node)]
    endless = any(isinstance(node, ast.While) and isinstance(node.test, ast.Constant) for node in nodes)
    cycles = any(isinstance(node, ast.Call) and facts.called(node) & _ENDLESS for node in nodes)
    return _has_size(sampler) and not endless and not cycles


def _has_size(value: Value) -> bool:
    """Whether `len()` of data, or of a sampler, is seen to be there."""
    if isinstance(value.unit, Class):
        return bool(value.unit.lookup("__len__")) or bool(value.unit.library_bases() - _PLAIN)
    return value.role is Role.DATASET and "Iter" not in value.name and ".iter." not in value.name


def _iterated(facts: Facts, taking: ast.expr, loop: ast.For) -> ast.expr | None:
    """The loader of an iterator that is made anew each time before a loop, by `iter(loader)`, and nowhere else."""
    tree, target = facts.tree(loop), ast.unparse(taking)
    around = next(tree.loops(loop), None)
    given = [b.statement for b in facts.bindings_in(facts.unit(loop)) if b.target == target]
    loaders: dict[str, ast.expr] = {}
    for statement in given:
        made = _given(statement, target)
        if next(tree.loops(statement), None) is not around:
            return None
        if not isinstance(made, ast.Call) or "builtins.iter" not in facts.called(made) or not made.args:
            return None
        loaders[ast.unparse(made.args[0])] = made.args[0]
    one = next(iter(loaders.values()), None)
    return one if len(loaders) == 1 and isinstance(one, (ast.Name, ast.Attribute)) else None


def _given(statement: ast.stmt, target: str) -> ast.expr | None:
    """What an assignment gives a name, also as one of several: `a, b = iter(x), iter(y)`."""
    if not isinstance(statement, ast.Assign):
        return None
    match statement.targets, statement.value:
        case [ast.Tuple(elts=names)], ast.Tuple(elts=values) if len(names) == len(values):
            pairs = zip(names, values, strict=True)
            return next((value for name, value in pairs if ast.unparse(name) == target), None)
    return statement.value


def is_caught(facts: Facts, call: ast.Call, loop: ast.AST) -> bool:
    """Whether the loop goes on, or ends, by itself where there is no further batch."""
    above = takewhile(lambda node: node is not loop, facts.tree(call).up(call))
    return any(isinstance(node, TRIES) and node.handlers for node in above)
