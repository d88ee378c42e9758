"""Files that a step before the training makes, and that what comes below reads, by paths that are written differently.

`preprocess("train")` writes `f"{mode}.npz"`, and `load(config.train_path)` reads it: one path is not the other by its
text, but both may name one file. The main process alone writes, so all others wait for it where they come to read.
"""

from __future__ import annotations

import ast
import os
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.state import ANY
from migrate.analysis.units import Function, Module
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion

_DEEPEST = 4
#: What gives a path whose last argument is its end.
_JOINING = frozenset({"os.path.join", "pathlib.Path", "builtins.str", "os.path.abspath"})


def tails(facts: Facts, path: ast.expr, depth: int = _DEEPEST) -> set[str]:
    """How a path may end, as far as that is written out: `/train.npz` is the whole name of a file, `.npz` is not."""
    if isinstance(path, ast.BinOp) and isinstance(path.op, ast.Add):
        return {tail.removeprefix("/") for tail in tails(facts, path.right, depth)}
    if isinstance(path, ast.Call) and path.args and facts.called(path) & _JOINING:
        return tails(facts, path.args[-1], depth)
    texts = [value.name for value in facts.values(path) if value.role is Role.TEXT]
    if found := {tail for tail in map(_tail, texts) if "." in tail}:
        return found
    given = _written_there(facts, path) if depth else ()
    return {tail for each in given for tail in tails(facts, each, depth - 1)}


def _tail(text: str) -> str:
    known = text.rpartition(ANY)[2]
    return f"/{os.path.basename(known)}" if known == text or "/" in known else known


def may_be_one(some: Iterable[str], others: Iterable[str]) -> bool:
    """Whether a file that ends in one way may be one that ends in another."""
    return any(one.endswith(other) or other.endswith(one) for one in some for other in others)


def _written_there(facts: Facts, path: ast.expr) -> Iterator[ast.expr]:
    """What a name or an attribute was given, that of another file, too: `config.train_path`."""
    yield from facts.once(Sources).given(path).expressions
    if isinstance(path, ast.Attribute):
        for value in facts.values(path.value):
            if isinstance(value.unit, Module):
                for binding in facts.bindings_in(value.unit):
                    if binding.target == path.attr and isinstance(binding.statement, ast.Assign):
                        yield binding.statement.value


def read_below(
    conversion: Conversion, node: ast.expr, unit: Unit, writing: Mapping[Unit, Sequence[ast.AST]], depth: int = _DEEPEST
) -> Iterator[ast.stmt]:
    """The statements that come to read, in functions that have called before what writes, and do not train yet."""
    facts = conversion.facts
    statement = facts.tree(node).statement(node)
    if conversion.access.has(unit) and conversion.has_accelerator_at(statement):
        above = [written for written in writing.get(unit, ()) if _is_made_before(conversion, written, statement)]
        if above:
            yield statement
            return
    if isinstance(unit, Function) and depth:
        for call in facts.callers(unit):
            yield from read_below(conversion, call.node, call.caller, writing, depth - 1)


def _is_made_before(conversion: Conversion, written: ast.AST, statement: ast.stmt) -> bool:
    """Whether something is written above a statement, by another one in which nothing trains."""
    own = conversion.facts.tree(written).statement(written)
    last = own.end_lineno or own.lineno
    return last < statement.lineno and conversion.has_accelerator_at(own) and not conversion.loops.trains(own)
