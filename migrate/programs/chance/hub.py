"""Data sets of the `datasets` library, whose methods draw: `data.shuffle()`, `data.train_test_split(0.1)`.

Without a seed of its own a table draws from NumPy's stream; what is read as a stream takes its seed from the system.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_none
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

_LIBRARY = "datasets."
_SEEDS = frozenset({"seed", "seeds", "generator", "generators", None})
_DRAWING = frozenset({"shuffle", "train_test_split"})


def draws_from_numpy(facts: Facts, call: ast.Call) -> bool:
    """Whether a table is shuffled or split, and by no seed of its own."""
    return bool(made := _unseeded(facts, call)) and not any(map(_is_stream, made))


def is_seeded_by_system(facts: Facts, call: ast.Call) -> bool:
    """Whether a stream is shuffled, and by no seed of its own."""
    return any(map(_is_stream, _unseeded(facts, call)))


def _unseeded(facts: Facts, call: ast.Call) -> list[ast.Call]:
    """The calls that made the data set which a call shuffles or splits; none: it draws nothing, or by its own seed."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _DRAWING:
        return []
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if any(name in _SEEDS and not is_none(value) for name, value in given.items()):
        return []
    is_still = isinstance(shuffled := given.get("shuffle"), ast.Constant) and not shuffled.value
    is_numbered = call.func.attr == "shuffle" and bool(call.args)  # `data.shuffle(42)`
    return [] if is_still or is_numbered else list(_made(facts, call.func.value, set()))


def _made(facts: Facts, node: ast.expr, seen: set[ast.expr]) -> Iterator[ast.Call]:
    """Where the library made the data set that an expression is taken from: `load_dataset(name)["train"].map(f)`."""
    if node in seen:
        return
    seen.add(node)
    if isinstance(node, ast.Call):
        if any(name.startswith(_LIBRARY) for name in facts.called(node)):
            yield node
        elif isinstance(node.func, ast.Attribute):
            yield from _made(facts, node.func.value, seen)
    elif isinstance(node, ast.Subscript):
        yield from _made(facts, node.value, seen)
    elif isinstance(node, (ast.Name, ast.Attribute)):
        for given in facts.once(Sources).given(node).expressions:
            yield from _made(facts, given, seen)


def _is_stream(made: ast.Call) -> bool:
    given = next((keyword.value for keyword in made.keywords if keyword.arg == "streaming"), None)
    return given is not None and not (isinstance(given, ast.Constant) and not given.value)
