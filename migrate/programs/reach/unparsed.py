"""Files that a program imports as it starts and that do not parse: what they hold is not known, a loader, say.

Those that only a function imports, when it is called, are none of them: the program may never come there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.program import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program
    from migrate.source.project import SourceFile


def unparsed(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """The imports of such files, in the files of the program's loops and in those that these import."""
    starts = {loop.unit.module for loop in program.training} | {program.module}
    reached = set().union(*(facts.imported(module) for module in starts))
    told: set[str] = set()
    for module in (module for module in facts.modules if module in reached):
        for statement, file in _imports(facts, module):
            if file.path not in told:
                told.add(file.path)
                why = f"{file.path} does not parse here, so what the program does with it is not known"
                yield Refusal(statement, "MIG905", why, "mend it, and run migrate again")


def _imports(facts: Facts, module: Module) -> Iterator[tuple[ast.stmt, SourceFile]]:
    for statement in module.tree.body:
        for name, level in _asked_for(statement):
            if (file := facts.project.unparsed(name, level, module.file)) is not None:
                yield statement, file


def _asked_for(statement: ast.stmt) -> Iterator[tuple[str, int]]:
    """The modules that an import may read, each with its leading dots."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            parts = alias.name.split(".")
            yield from ((".".join(parts[:end]), 0) for end in range(1, len(parts) + 1))
    elif isinstance(statement, ast.ImportFrom):
        base = statement.module or ""
        yield base, statement.level
        yield from ((f"{base}.{alias.name}".lstrip("."), statement.level) for alias in statement.names)
