"""The condition for the CPU by a device that is chosen below the accelerator, in the words of the function above."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk
from migrate.programs.values.conditions import needs
from migrate.programs.values.words_above import in_words_above

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.device.choices import Choice


def told_above(facts: Facts, start: Unit, choice: Choice) -> tuple[str, frozenset[str]] | None:
    """The condition, with what it needs; None: something of it cannot be told above, or it asks for no user."""
    assert choice.cpu is not None
    condition = ast.parse(choice.cpu, mode="eval").body
    return cpu_above(facts, start, condition, (*choice.nodes(), *walk(choice.outermost)))


def cpu_above(
    facts: Facts, start: Unit, condition: ast.expr, nodes: Iterable[ast.AST]
) -> tuple[str, frozenset[str]] | None:
    """The same for a condition of names that stand in `nodes`."""
    told = in_words_above(facts, start, condition, nodes, gpu=False)
    if told is None or isinstance(told, ast.Constant):
        return None
    return ast.unparse(told), frozenset(needs(told)) - {"torch", "torch.device"}
