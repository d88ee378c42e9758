"""What is logged above the accelerator, which keeps the other processes quiet: a log file holds it once for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.output.surroundings import run_above
from migrate.programs.values.logs import logs, tells_progress

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from migrate.programs.conversion import Conversion


def logged_above(conversion: Conversion) -> Iterator[ast.stmt]:
    """The statements of a program, and of what it shares with others, that log before there is an accelerator."""
    facts, start = conversion.facts, conversion.program.start
    for use in conversion.speaking_uses:
        statement = facts.tree(use.node).statement(use.node)
        is_told = use.unit in (start, facts.module(statement)) or tells_progress(facts, use.node)
        if is_told and logs(facts, use.node) and not conversion.has_accelerator_at(statement):
            yield statement
    early = {*conversion.access.early, *run_above(conversion)} & conversion.program.outsiders.keys()
    for use in facts.calls:
        if use.unit in early and facts.is_editable(use.unit) and tells_progress(facts, use.node):
            yield facts.tree(use.node).statement(use.node)
