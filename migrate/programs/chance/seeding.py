"""Statements that do no more than seed: `torch.manual_seed(seed)`, `set_seed(args)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.same import SEEDERS

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def only_seeds(facts: Facts, statement: ast.stmt) -> bool:
    """Whether a statement seeds, by a library or by a function of the project."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and _seeds(facts, statement.value)


def _seeds(facts: Facts, call: ast.Call) -> bool:
    if facts.called(call) & SEEDERS:
        return True
    targets = facts.targets(call)
    return bool(targets) and all(
        any(isinstance(node, ast.Call) and facts.called(node) & SEEDERS for node in facts.own(target))
        for target in targets
    )
