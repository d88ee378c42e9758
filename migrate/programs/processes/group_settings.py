"""What an optimizer holds for a group of its parameters beside these: `group["lr"]`, by which programs lower rates.

It is what the optimizer was made with, and what has been set since, by the program or by a scheduler. That all of this
is the same on all processes needs no seed: the weights beside it are drawn, and nothing here goes by them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, of_role, only, origins, roles
from migrate.analysis.syntax import arguments, targets_of
from migrate.programs.schedule.groups import optimizers_of
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.programs.processes.sameness import Sameness

_Set = ast.Assign | ast.AugAssign


def is_same_setting(facts: Facts, sameness: Sameness, group: ast.expr, key: str) -> bool:
    """Whether something is a group of a known optimizer, and what it has under a key is the same on all processes."""
    made = [origins(facts.values(each), Role.OPTIMIZER) for each in optimizers_of(facts, group)]
    if key == "params" or not made or not all(made):
        return False
    mine = frozenset[ast.AST]().union(*made)
    return (
        all(_is_made_alike(facts, sameness, origin, key) for origin in mine)
        and all(map(sameness.same, _handed(facts, mine)))
        and all(_is_alike(sameness, node) for node in facts.once(_Settings).of(key, mine))
        and all(_is_alike(sameness, step) for step in facts.once(_Settings).steps)
    )


def _is_alike(sameness: Sameness, node: _Set | ast.Call) -> bool:
    given = arguments(node) if isinstance(node, ast.Call) else [node.value]
    return all(map(sameness.same, given)) and sameness.alike(node, deep=True)


def _is_made_alike(facts: Facts, sameness: Sameness, call: ast.AST, key: str) -> bool:
    """Whether an optimizer of PyTorch is made with the same for a key, as far as that is written out."""
    if not isinstance(call, ast.Call) or facts.targets(call):
        return False
    named = [each for each in call.keywords if each.arg != "params"]
    if any(each.arg is None for each in named) or not all(sameness.same(each.value) for each in named):
        return False
    trained = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "params")]
    return all(map(sameness.same, call.args[1:])) and all(_is_grouped(facts, sameness, each, key) for each in trained)


def _is_grouped(facts: Facts, sameness: Sameness, trained: ast.expr, key: str, depth: int = 2) -> bool:
    """Whether what an optimizer trains is parameters, or groups that are written out and have the same under a key."""
    if isinstance(trained, ast.List):
        return all(_is_grouped(facts, sameness, each, key, depth) for each in trained.elts)
    if isinstance(trained, ast.Dict):
        return all(
            isinstance(each, ast.Constant) and (each.value != key or sameness.same(value))
            for each, value in zip(trained.keys, trained.values, strict=True)
        )
    if isinstance(trained, ast.Name) and depth and not _are_parameters(facts, facts.values(trained)):
        given = facts.once(Sources).given(trained)
        parts = given.expressions if given.complete else ()
        return bool(parts) and all(_is_grouped(facts, sameness, each, key, depth - 1) for each in parts)
    return _are_parameters(facts, facts.values(trained))


def _are_parameters(facts: Facts, values: Values) -> bool:
    """Whether something is parameters of models, or a list of nothing else."""
    lists = [value.origin for value in of_role(values, Role.CONTAINER) if value.origin is not None]
    held = (inner for origin in lists for inner in facts.holding(origin).values())
    return only(values, Role.PARAMETERS, Role.CONTAINER) and all(only(inner, Role.PARAMETERS) for inner in held)


def _handed(facts: Facts, optimizers: frozenset[ast.AST]) -> Iterator[ast.expr]:
    """What optimizers are told of groups beside what is written into these."""
    for use in facts.calls:
        is_telling = getattr(use.node.func, "attr", "") in ("load_state_dict", "add_param_group")
        if is_telling and origins(facts.receiver(use.node), Role.OPTIMIZER) & optimizers:
            yield from arguments(use.node)


class _Settings:
    """The statements that set something in groups, and the steps of schedulers."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        nodes = [node for module in facts.editable for node in facts.tree(module.tree).nodes]
        self._set: list[_Set] = [n for n in nodes if isinstance(n, (ast.Assign, ast.AugAssign)) and any(_keyed(n))]
        calls = [use.node for use in facts.calls if getattr(use.node.func, "attr", "") == "step"]
        self.steps = [call for call in calls if Role.SCHEDULER in roles(facts.receiver(call))]

    def of(self, key: str, optimizers: frozenset[ast.AST]) -> Iterable[_Set]:
        """What sets something under a key of a group of some optimizers, or of what is not known to be of others."""
        return [node for node in self._set if any(self._is_one(to, key, optimizers) for to in _keyed(node))]

    def _is_one(self, to: ast.Subscript, key: str, optimizers: frozenset[ast.AST]) -> bool:
        if isinstance(to.slice, ast.Constant) and to.slice.value != key:
            return False
        held = list(optimizers_of(self._facts, to.value))
        made = [origins(self._facts.values(each), Role.OPTIMIZER) for each in held]
        return bool(held) and any(not each or each & optimizers for each in made)


def _keyed(statement: _Set) -> Iterator[ast.Subscript]:
    return (to for to in targets_of(statement) if isinstance(to, ast.Subscript))
