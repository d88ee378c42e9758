"""Statements that do no more than seed, or say by what: `torch.manual_seed(seed)`, `seed = args.seed + rank`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.same import SEEDERS

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def only_seeds(facts: Facts, statement: ast.stmt) -> bool:
    """Whether a statement seeds, by a library or by a function of the project, or names what such statements take."""
    match statement:
        case ast.Expr(ast.Call() as call):
            return _seeds(facts, call)
        case ast.Assign([ast.Name(name)], _):
            nodes = facts.own(facts.unit(statement))
            read = [n for n in nodes if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
            above = [facts.tree(node).statement(node) for node in read]
            return bool(above) and all(isinstance(each, ast.Expr) and only_seeds(facts, each) for each in above)
    return False


def _seeds(facts: Facts, call: ast.Call) -> bool:
    if facts.called(call) & SEEDERS:
        return True
    targets = facts.targets(call)
    return bool(targets) and all(
        any(isinstance(node, ast.Call) and facts.called(node) & SEEDERS for node in facts.own(target))
        for target in targets
    )
