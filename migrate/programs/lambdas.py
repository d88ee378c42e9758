"""Lambdas that move: `Variable = lambda *a: autograd.Variable(*a).cuda()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import tensors
from migrate.analysis.units import Module
from migrate.programs.program import Program, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops


def hidden_moves(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """A lambda that moves, and does not see the accelerator, or takes the batches of a loader."""
    for module in {loop.unit.module for loop in program.training}:
        for node in facts.tree_of(module).nodes:
            if isinstance(node, ast.Lambda) and _moves(node) and not _sees_accelerator(facts, program, node):
                yield Refusal(
                    node,
                    "MIG120",
                    "a lambda moves tensors to the device",
                    "write the moves out where they happen, or make the lambda a function",
                )
                return


def _moves(node: ast.Lambda) -> bool:
    return any(
        isinstance(inner, ast.Attribute) and inner.attr in tensors.MOVES and inner.attr != "cpu"
        for inner in ast.walk(node)
    )


def _sees_accelerator(facts: Facts, program: Program, node: ast.Lambda) -> bool:
    """Whether a lambda stands at the top level of the module that makes the accelerator, or in its home.

    What it gives is known to come from no prepared loader only where there is none.
    """
    home = program.home
    above = next((a for a in facts.tree(node).up(node) if isinstance(a, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    is_at_home = above is None and isinstance(home, Module) and home is facts.module(node)
    return is_at_home and not program.training_loaders and not program.evaluation
