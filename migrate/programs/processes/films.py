"""Environments that write films or logs of what is played: the main process alone does so.

Those that also tell the program what they have measured stay with all processes, and write nothing on the others.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import argument_at, is_none
from migrate.analysis.units import Function
from migrate.programs.chance.seeds import modules_of
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.callees import reached
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops

_GAMES = ("gym.", "gymnasium.")
_RECORDERS = (".Monitor", ".RecordVideo", ".VideoRecorder", ".monitoring.Monitor")


#: What tells how an episode went, and writes that into the file that is its second argument, if there is one.
_LOGGING = ("stable_baselines3.", "stable_baselines.", "baselines.")
_FILE = "filename"


def is_recorder(name: str) -> bool:
    """Whether a function of a library makes an environment that records what is played in another."""
    return name.startswith(_GAMES) and name.endswith(_RECORDERS)


def recorded(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Recorders that are more than put around an environment in a statement of their own, or in a file not named."""
    for call in _makers(facts, program, _is_logging):
        if not facts.is_editable(facts.unit(call)) and _file(call) is not None:
            path = facts.file(call).path
            yield Refusal(call, "MIG117", f"{path} writes what is played, in every process", f"name {path}, too")
    for call in _recorders(facts, program):
        if not facts.is_editable(facts.unit(call)):
            path = facts.file(call).path
            yield Refusal(call, "MIG117", f"{path} records what is played, in every process", f"name {path}, too")
        elif _around(facts, call) is None:
            why = f"{ast.unparse(call.func)} records what is played: every process would write the same files"
            way_out = "put it around the environment in a statement of its own: env = RecordVideo(env, folder)"
            yield Refusal(call, "MIG117", why, way_out)


def told_files(facts: Facts, program: Program) -> list[ast.expr]:
    """The files that environments write which tell the program how an episode went: None for the other processes."""
    found = [_file(call) for call in _makers(facts, program, _is_logging)]
    return [file for file in found if file is not None]


def _is_logging(name: str) -> bool:
    return name.startswith(_LOGGING) and name.endswith(".Monitor")


def _file(call: ast.Call) -> ast.expr | None:
    """The file that is written; None: none is."""
    given = argument_at(call, 1, _FILE)
    return None if is_none(given) else given


def put_around(facts: Facts, program: Program) -> list[ast.stmt]:
    """The statements that put a recorder around an environment: the other processes play without it."""
    found = [_around(facts, call) for call in _recorders(facts, program)]
    return [statement for statement in found if statement is not None]


def _recorders(facts: Facts, program: Program) -> Iterator[ast.Call]:
    return _makers(facts, program, is_recorder)


def _makers(facts: Facts, program: Program, is_one: Callable[[str], bool]) -> Iterator[ast.Call]:
    """The calls that make such environments: also in functions that only a library of environments calls."""
    for module in modules_of(facts, program) if any(not loop.loaders for loop in program.training) else ():
        if not any(word in module.file.content for word in (b"Record", b"Monitor")):
            continue
        for node in facts.tree_of(module).nodes:
            if isinstance(node, ast.Call) and any(map(is_one, called_by_name(facts, node))):
                if facts.is_editable(facts.unit(node)) or _is_entered(facts, program, node):
                    yield node


def _is_entered(facts: Facts, program: Program, node: ast.AST) -> bool:
    """Whether a program comes to code of a file that was not named, which other programs use, too."""
    starts = [program.module, *([program.start] if program.start is not None else [])]
    units = reached(facts, [*starts, *(loop.unit for loop in program.training)])
    entered = {unit.node for unit in units if isinstance(unit, Function)}
    return any(above in entered for above in facts.tree(node).up(node))


def _around(facts: Facts, call: ast.Call) -> ast.stmt | None:
    """`env = RecordVideo(env, folder)`."""
    statement = facts.tree(call).statement(call)
    if not isinstance(statement, ast.Assign) or statement.value is not call or len(statement.targets) != 1:
        return None
    given = argument_at(call, 0, "env")
    is_same = isinstance(given, (ast.Name, ast.Attribute)) and ast.unparse(given) == ast.unparse(statement.targets[0])
    return statement if is_same else None
