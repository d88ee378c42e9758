"""Layers whose result for a sample depends on the rest of the batch, or is drawn, in training mode."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.training import UNSTEADY
from migrate.analysis.roles import Role
from migrate.analysis.syntax import line_of

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.programs.program import Program


def unsteady(facts: Facts, program: Program) -> str:
    """A layer by which the models of a program are others in training mode; empty: there is none, as the code tells."""
    for origin in sorted(program.model_origins, key=line_of):
        for value in facts.values(origin) if isinstance(origin, ast.expr) else ():
            if value.role is Role.MODEL and value.unit is None and not value.name.startswith("torch.nn."):
                return f"layers of {value.name or 'a library'}"
    modules = facts.imported(program.module)
    for use in facts.calls_anywhere:
        for name in sorted(facts.called(use.node)) if use.unit.module in modules else ():
            if name.startswith("torch.nn.") and name.rpartition(".")[2].startswith(UNSTEADY):
                return name.rpartition(".")[2]
    return ""
