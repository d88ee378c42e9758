"""What could not be resolved and matters: what an optimizer trains, what a loop runs over, what a batch goes into."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.gaps import Cause, Gap
from migrate.analysis.roles import FROM_LOADER, Role, only, roles
from migrate.analysis.syntax import argument_at, line_of, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.gaps import Gaps
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

MOST = 3  # gaps that are told; the first are the nearest

#: What else than an optimizer is stepped.
_STEPPING = frozenset({Role.SCHEDULER, Role.SCALER, Role.ACCELERATOR})
#: How a gap is told; `<place>` is where it is.
_WORDS = {
    Cause.NO_ROW: "what `{source}()` at <place> returns",
    Cause.OTHER: "what `{source}` at <place> gives",
    Cause.UNFILLED: "what is passed as `{source}` at <place>",
    Cause.UNSEEN: "`{source}`, which is imported at <place> and was not read",
    Cause.UNSET: "what `{source}` at <place> is",
    Cause.NOT_RUN: "what runs at <place>, which nothing calls",
}


def unresolved(facts: Facts, loops: Loops, gaps: Gaps, program: Program) -> list[tuple[str, ast.AST]]:
    """The gaps of a program in words, each with its place."""
    found: dict[str, tuple[str, ast.AST]] = {}
    for node in _wanted(facts, loops, gaps, program):
        for gap in gaps.why(node):
            if gap.cause in _WORDS and _matters(gap):
                what = _WORDS[gap.cause].format(source=gap.source)
                found.setdefault(f"{what} {id(gap.node)}", (what, gap.node))
                break
    return list(found.values())[:MOST]


def _matters(gap: Gap) -> bool:
    return bool(gap.source) or gap.cause is Cause.NOT_RUN


def _wanted(facts: Facts, loops: Loops, gaps: Gaps, program: Program) -> Iterator[ast.expr]:
    """The expressions that have to be known, and are not."""
    for loop in program.training:
        optimizers = sorted(loops.trained_by(loop), key=line_of)
        for origin in optimizers:
            if isinstance(origin, ast.Call) and not facts.models_of.get(origin):
                given = argument_at(origin, 0, "params")  # which says what it trains
                yield from [given] if given is not None else ()
        if not optimizers:
            yield from (node for node in _stepped(loop.node) if not roles(facts.values(node)) & _STEPPING)
        if isinstance(loop.node, (ast.For, ast.AsyncFor)) and not loop.loaders:
            if not gaps.is_understood(loop.node.iter):
                yield loop.node.iter
        yield from _called(facts, loop.node)


def _stepped(loop: ast.AST) -> Iterator[ast.expr]:
    """What is stepped in a loop."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step":
            yield node.func.value


def _called(facts: Facts, loop: ast.AST) -> Iterator[ast.expr]:
    """Objects that nothing is known of and that are called with a batch: they may be models."""
    for node in walk(loop):
        if isinstance(node, ast.Call) and only(facts.values(node.func), Role.UNKNOWN):
            if any(roles(facts.values(argument)) & FROM_LOADER for argument in node.args):
                yield node.func
