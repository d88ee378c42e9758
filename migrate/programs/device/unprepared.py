"""Models that run although nothing has prepared them: `exp.test()`, in another branch than `exp.train()`.

Where a function is handed a model and prepares it, or a method that of its object, prepare brings it to the device.
A run that never comes there needs the move that the program made.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.construction import is_constructor
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import FUNCTIONS, LOOPS, TRIES, blocks, own_expressions
from migrate.analysis.units import Function
from migrate.programs.reach.callees import upwards
from migrate.programs.reach.entry_files import is_of_another_script
from migrate.programs.reach.outsiders import is_inside_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.program import Program

_DEEPEST = 4  # calls inside calls
#: Inside these a call may not be made at all.
_AT_TIMES = (ast.IfExp, ast.BoolOp, ast.Lambda)


def runs_unprepared(facts: Facts, program: Program, mine: set[ast.AST]) -> bool:
    """Whether one of the models runs on a way that does not lead through the home of its program."""
    home = program.home
    if home is program.start or not isinstance(home, Function) or _sets_up(home, program.start):
        return False
    return any(
        origins(facts.values(use.node.func), Role.MODEL) & mine
        and not is_inside_model(facts, use.unit)
        and _is_reached_without(facts, program, home, use.node)
        for use in facts.calls
    )


def _sets_up(home: Function, start: Unit | None) -> bool:
    """Whether both are the `__init__` of one object, that of its base first: whatever runs the object comes later."""
    return isinstance(start, Function) and is_constructor(start) and is_constructor(home)


def _is_reached_without(facts: Facts, program: Program, home: Function, node: ast.AST) -> bool:
    def passes(each: ast.AST) -> bool:
        return facts.unit(each) is not home and not _is_below(facts, home, each)

    def is_entered(each: ast.AST) -> bool:
        unit = facts.unit(each)
        if isinstance(unit, Function):
            return not facts.callers_known(unit)
        return not is_of_another_script(facts, program, each)

    return any(passes(each) and is_entered(each) for each in upwards(facts, node, passes))


def _is_below(facts: Facts, home: Function, node: ast.AST) -> bool:
    """Whether the home was entered before, whenever a node runs: by a statement above it, or above what holds it."""
    tree = facts.tree(node)
    for inner in (node, *tree.up(node)):
        if isinstance(inner, (*FUNCTIONS, ast.ClassDef, ast.Module)):
            return False
        if isinstance(inner, ast.stmt):
            block = tree.block(inner)
            if _enters(facts, home, block[: next(i for i, s in enumerate(block) if s is inner)], _DEEPEST):
                return True
    return False


def _enters(facts: Facts, home: Function, block: Sequence[ast.stmt], depth: int) -> bool:
    """Whether a block enters the home whenever it runs; loops are taken to run at least once."""
    return any(_does(facts, home, statement, depth) for statement in block)


def _does(facts: Facts, home: Function, statement: ast.stmt, depth: int) -> bool:
    if any(_calls(facts, home, expression, depth) for expression in own_expressions(statement)):
        return True
    if isinstance(statement, ast.If):
        return _enters(facts, home, statement.body, depth) and _enters(facts, home, statement.orelse, depth)
    if isinstance(statement, (*LOOPS, ast.With, ast.AsyncWith, *TRIES)):
        return _enters(facts, home, next(blocks(statement)), depth)
    return False


def _calls(facts: Facts, home: Function, expression: ast.AST, depth: int) -> bool:
    """Whether an expression always calls the home, or a function that enters it."""
    if isinstance(expression, ast.Call) and (targets := facts.targets(expression)):
        if all(unit is home or (depth > 0 and _enters(facts, home, unit.body, depth - 1)) for unit in targets):
            return True
    if isinstance(expression, _AT_TIMES):
        return False
    return any(_calls(facts, home, inner, depth) for inner in ast.iter_child_nodes(expression))
