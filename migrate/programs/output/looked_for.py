"""Files that the main process alone removes, and that all processes look for below.

`shutil.rmtree(folder)` above `if os.path.exists(path):`: one that is early would still find what is going to go.
Training between the two keeps them together anyway.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.programs.output.filled import parts_of
from migrate.programs.output.folders import if_missing
from migrate.programs.output.removals import TREES, between
from migrate.programs.output.voice import Voice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.programs.conversion import Conversion


def looked_for(conversion: Conversion) -> Iterator[ast.stmt]:
    """The statements that look for what has been removed, before which all processes wait."""
    facts, voice = conversion.facts, Voice(conversion)
    gone = [
        (parts_of(facts, path), use)
        for use in conversion.speaking_uses
        if (path := _removed(use.node, facts.called(use.node))) is not None
        if voice.is_of_one(facts.tree(use.node).statement(use.node))
    ]
    for use in conversion.speaking_uses if gone else ():
        path = _asked(use.node, facts.called(use.node))
        statement = facts.tree(use.node).statement(use.node)
        if path is None or if_missing(facts, statement) is not None or _is_of_one(voice, statement):
            continue
        parts = parts_of(facts, path)
        for removed, taker in gone:
            if removed and parts[: len(removed)] == removed:
                if (place := between(conversion, (taker.node, taker.unit), (use.node, use.unit))) is not None:
                    yield place


def _is_of_one(voice: Voice, statement: ast.stmt) -> bool:
    """Whether what a statement finds is only the main process's, or what that one shows."""
    return voice.is_print(statement) or voice.is_of_one(statement)


def _removed(call: ast.Call, names: frozenset[str]) -> ast.expr | None:
    if call.args and names & (TREES | output.REMOVES):
        return call.args[0]
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == output.REMOVES_ITSELF and not names
    return call.func.value if is_method and isinstance(call.func, ast.Attribute) else None


def _asked(call: ast.Call, names: frozenset[str]) -> ast.expr | None:
    if call.args and names & (output.EXISTS | output.LOOKS):
        return call.args[0]
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in output.EXISTS_ITSELF and not names
    return call.func.value if is_method and isinstance(call.func, ast.Attribute) else None
