"""Folders that a program makes and fills where there is none.

    if not os.path.exists(path):
        os.makedirs(path)
        collect(path)

A process that comes late would find the folder that another one has made, and leave out what all do there: draw, wait
for one another. So all have asked before one makes it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.output.folders import asked_for, made_under

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def made_and_filled(facts: Facts, branch: ast.If) -> ast.stmt | None:
    """The statement of a branch that makes the folder, where functions of the project go on with it."""
    path, _, missing = asked_for(facts, branch)
    makes = [n for n, each in enumerate(missing) if path is not None and _makes(facts, each, path)]
    later = missing[makes[0] + 1 :] if makes else ()
    calls = (node for statement in later for node in ast.walk(statement) if isinstance(node, ast.Call))
    return missing[makes[0]] if any(map(facts.targets, calls)) else None


def _makes(facts: Facts, statement: ast.stmt, path: str) -> bool:
    made = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(made, ast.Call) and made_under(facts, made) == path
