"""A model that is run on the CPU before it is moved: prepare takes the place of the move, not of what makes the model.

model = Net()
print(model(images).shape)      # images lie on the CPU, and so does the model
model.to(device)
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import FUNCTIONS, own_nodes
from migrate.programs.device.choices import choices
from migrate.programs.device.devices import is_move
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.program import Program


def moved_below(facts: Facts, block: Sequence[ast.stmt], position: int, models: Collection[ast.AST]) -> int:
    """The position of the statement that first moves one of some models, if they are run between the given one and it.

    Else the given one, at which all of them are made.
    """
    if any(_moves(facts, node, models) for each in block[: position + 1] for node in _nodes(each)):
        return position
    is_run = False
    for index, statement in enumerate(block[position + 1 :], position + 1):
        if any(_moves(facts, node, models) for node in _nodes(statement)):
            return index if is_run else position
        is_run = is_run or any(_runs(facts, node, models) for node in _nodes(statement))
    return position


def _nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        yield statement
        yield from own_nodes(statement)


def _moves(facts: Facts, node: ast.AST, models: Collection[ast.AST]) -> bool:
    if not isinstance(node, ast.Call) or not is_move(facts, node):
        return False
    return not origins(facts.receiver(node), Role.MODEL).isdisjoint(models)


def _runs(facts: Facts, node: ast.AST, models: Collection[ast.AST]) -> bool:
    """Whether a call runs one of some models, itself or in functions of the project."""
    if not isinstance(node, ast.Call):
        return False
    inside = (inner for unit in reached(facts, facts.targets(node)) for inner in facts.own(unit))
    calls = (inner for inner in (node, *inside) if isinstance(inner, ast.Call))
    return any(not origins(facts.values(call.func), Role.MODEL).isdisjoint(models) for call in calls)


def is_placing(facts: Facts, program: Program, statement: ast.stmt) -> bool:
    """A statement that only chooses the device or moves a trained model: it goes away, prepare takes its place."""
    if isinstance(statement, ast.If):
        return all(is_placing(facts, program, inner) for inner in (*statement.body, *statement.orelse))
    chosen = choices(facts, facts.unit(statement))
    if any(statement is choice.statement or statement in choice.others for choice in chosen):
        return True
    value = getattr(statement, "value", None)
    if isinstance(statement, (ast.Expr, ast.Assign)) and value is not None and is_move(facts, value):
        return bool(origins(facts.receiver(value), Role.MODEL) & program.model_origins)
    return False
