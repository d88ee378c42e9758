"""What a loop gives to one of its names in all its rounds, as far as that is written out."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts


def is_listed(facts: Facts, rounds: ast.expr) -> bool:
    """`[("train", first), ("test", second)]`: as many rounds as are written there, whatever is in them."""
    if isinstance(rounds, ast.Call) and _numbers(facts, rounds):
        rounds = rounds.args[0]
    if not isinstance(rounds, (ast.List, ast.Tuple)):
        return False
    return not any(isinstance(each, ast.Starred) for each in rounds.elts)


def given_in_rounds(facts: Facts, loop: ast.For | ast.AsyncFor, target: str) -> list[ast.expr]:
    """The expressions that a loop gives to a name of its own: none for the number that enumerate() gives.

    Of `for name, rows in [("train", first), ("test", second)]` the name has `"train"` and `"test"`. Where it cannot be
    told apart, it has all that the loop runs over.
    """
    names = [ast.unparse(each) for each in loop.target.elts] if isinstance(loop.target, ast.Tuple) else []
    rounds = loop.iter
    if names[:1] == [target] and isinstance(rounds, ast.Call) and _numbers(facts, rounds):
        return []
    if names.count(target) == 1 and isinstance(rounds, (ast.List, ast.Tuple)):
        items = [each for each in rounds.elts if isinstance(each, ast.Tuple) and len(each.elts) == len(names)]
        parts = [each.elts[names.index(target)] for each in items]
        inside = [part for each in items for part in each.elts]
        if len(items) == len(rounds.elts) and not any(isinstance(part, ast.Starred) for part in inside):
            return parts
    return [rounds]


def _numbers(facts: Facts, call: ast.Call) -> bool:
    """`enumerate(rounds)`."""
    return "builtins.enumerate" in facts.called(call) and bool(call.args)
