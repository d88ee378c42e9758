"""Prepare in a round: the folds of a cross-validation, the settings of a search, each with a model of its own.

The accelerator keeps what it has prepared. Without its help a round's model and the state of its optimizer are gone
when the next round gives their names to others; so it has to be told to let go of them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import targets_of
from migrate.programs.values.kept import FILLING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.home.naming import Named
    from migrate.programs.prepare.placement import Placement
    from migrate.programs.stages import Stage

_TRAINED = frozenset({Role.MODEL, Role.OPTIMIZER})
_TOGETHER = (ast.Tuple, ast.List, ast.Dict, ast.Starred)


def round_of(facts: Facts, placement: Placement) -> Stage | None:
    """The only stage of models and optimizers, if each round makes those anew, and nothing keeps them for longer.

    Loaders may have been prepared above it, once: they go on as they are.
    """
    stages = [stage for stage in placement.stages.each if any(each.role in _TRAINED for each in stage.objects)]
    if len(stages) != 1 or not facts.singles.runs_again(stages[0].spot.statement):
        return None
    if facts.singles.runs_again(placement.accelerator.statement):  # each has objects of its own
        return None
    (stage,) = stages
    is_new = all(_is_of_the_round(facts, stage, each) for each in stage.objects)
    return stage if is_new and not _are_kept(facts, stage) else None


def _is_of_the_round(facts: Facts, stage: Stage, named: Named) -> bool:
    """Whether the statement that binds it stands in the loops that prepare stands in, under a name of the round."""
    if not named.statements or not named.target.isidentifier():
        return False
    tree = facts.tree(stage.spot.statement)
    return [*tree.loops(named.statements[-1])] == [*tree.loops(stage.spot.statement)]


def _are_kept(facts: Facts, stage: Stage) -> bool:
    """Whether code gives one of the objects back, or puts it where it is found in the next round."""
    names = {named.target for named in stage.objects}
    return any(
        isinstance(each, ast.Name) and each.id in names for node in facts.own(stage.unit) for each in _put(node)
    ) or any(names & set(node.names) for node in facts.own(stage.unit) if isinstance(node, ast.Global))


def _put(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement or a call gives to others, one by one."""
    match node:
        case ast.Return(value=value) | ast.Yield(value=value) | ast.AugAssign(value=value) if value is not None:
            yield from _parts(value)
        case ast.Assign(value=value) | ast.AnnAssign(value=value) if value is not None:
            if not all(isinstance(target, ast.Name) for target in targets_of(node)) or isinstance(value, _TOGETHER):
                yield from _parts(value)
        case ast.Call(func=ast.Attribute(attr=method), args=given) if method in FILLING:
            for value in given:
                yield from _parts(value)


def _parts(value: ast.expr) -> Iterator[ast.expr]:
    """A value, or those of which a tuple, a list or a dictionary is made."""
    if isinstance(value, _TOGETHER):
        for part in ast.iter_child_nodes(value):
            if isinstance(part, ast.expr):
                yield from _parts(part)
    else:
        yield value
