"""Code that runs when another file than the training script is the program."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.entrances import entered_from
from migrate.analysis.syntax import is_main_guard
from migrate.analysis.units import module_of

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.program import Program


def is_of_another_script(facts: Facts, program: Program, node: ast.AST) -> bool:
    """Whether code runs only when another file is the program."""
    guards = (above for above in facts.tree(node).up(node) if isinstance(above, ast.If))
    mains = {program.module}
    if program.start is not None:
        mains |= {module_of(program.start), *entered_from(facts, program.start)}
    return facts.module(node) not in mains and any(map(is_main_guard, guards))
