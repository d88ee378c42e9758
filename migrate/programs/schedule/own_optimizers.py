"""Optimizers that set their own rate by how far they have come: N processes take N batches in each of their steps (E5).

lr = group["lr"] * warm_up(state["step"] / group["t_total"])     in the `step` of an optimizer: BERT's Adam, LARS

No scheduler is there that could be prepared, and the optimizer counts its own steps. Corrections by the count alone,
`1 - beta ** state["step"]`, are no schedule. What writes the rate into its groups is looked at as every such statement
is (`rates.py`).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import arguments, targets_of
from migrate.analysis.units import Function
from migrate.programs.schedule.groups import is_scheduled
from migrate.programs.values.additions import additions
from migrate.programs.values.lengths import lengths
from migrate.programs.values.sources import Sources, received

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Class
    from migrate.programs.program import Program
    from migrate.programs.values.lengths import Moments

#: What optimizers of libraries are given as the number of their steps.
_TOTALS = {"BertAdam": "t_total", "OpenAIAdam": "t_total"}
_PYTORCH = "torch.optim."
_SETTING = (ast.Assign, ast.AugAssign)


def scheduled_within(facts: Facts, program: Program, moments: Moments) -> Iterator[tuple[ast.Call, ast.expr]]:
    """The calls that make such optimizers, each with what it is given that is no number of its steps.

    The length of a loader that is prepared by then is one.
    """
    for origin in (origin for named in program.optimizers for origin in named.origins):
        if isinstance(origin, ast.Call) and not _is_seen_elsewhere(facts, program, origin):
            for given in _given(facts, program, origin):
                measured = [n for e in facts.once(Sources).behind([given]) for n in lengths(facts, program, e)]
                if any(False in moments.after(length) for length in measured) or not (measured or _is_off(given)):
                    yield origin, given
                    break


def _is_seen_elsewhere(facts: Facts, program: Program, made: ast.Call) -> bool:
    """Whether an optimizer is one of PyTorch, which have no schedules, or writes its rate where others would."""
    if any(name.startswith(_PYTORCH) for name in facts.called(made)):
        return True
    classes = [unit.owner for unit in facts.targets(made) if unit.owner is not None]
    statements = (n for cls in classes for unit in _methods(cls) for n in facts.own(unit) if isinstance(n, _SETTING))
    return any(is_scheduled(facts, program, target) for node in statements for target in targets_of(node))


def _methods(cls: Class) -> Iterator[Function]:
    return (m.unit for name in cls.names for m in cls.lookup(name) if isinstance(m.unit, Function))


def _given(facts: Facts, program: Program, made: ast.Call) -> Iterator[ast.expr]:
    """What an optimizer is given that counts steps: a length, or what its steps are divided by."""
    for given in arguments(made):
        if any(True for node in facts.once(Sources).behind([given]) for _ in lengths(facts, program, node)):
            yield given
    totals = {_TOTALS.get(name.rpartition(".")[2]) for name in facts.called(made)}
    yield from (keyword.value for keyword in made.keywords if keyword.arg in totals - {None})
    for unit in facts.targets(made):
        if unit.owner is not None:
            divisors = set(_divisors(facts, unit.owner))
            yield from (given for name, given in received(made, unit).items() if name in divisors)


def _divisors(facts: Facts, cls: Class) -> Iterator[str]:
    """The names of what a class divides its own count of steps by: `state["step"] / group["t_total"]`."""
    nodes = [node for unit in _methods(cls) for node in facts.own(unit)]
    counts = {ast.unparse(to) for node in nodes for to, by in additions(node) if isinstance(by, ast.Constant)}
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and counts & set(_factors(node.left)):
            yield from _hyperparameters(node.right)


def _factors(node: ast.expr) -> Iterator[str]:
    """What a number goes along with, as it is written: not the exponents in it."""
    if isinstance(node, ast.BinOp):
        if not isinstance(node.op, ast.Pow):
            yield from (*_factors(node.left), *_factors(node.right))
    elif isinstance(node, ast.Call):
        yield from (factor for given in arguments(node) for factor in _factors(given))
    else:
        yield ast.unparse(node)


def _hyperparameters(node: ast.expr) -> Iterator[str]:
    """`group["t_total"]`, `self.total`, `max(1, group["warmup"])`: the names of what an optimizer was made with."""
    if isinstance(node, ast.Call):
        yield from (name for given in arguments(node) for name in _hyperparameters(given))
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
        yield node.slice.value


def _is_off(given: ast.expr) -> bool:
    """Whether a number says that there is no schedule: `t_total=-1`."""
    number = given.operand if isinstance(given, ast.UnaryOp) and isinstance(given.op, ast.USub) else given
    is_negative = number is not given
    return isinstance(number, ast.Constant) and (is_negative or not number.value)
