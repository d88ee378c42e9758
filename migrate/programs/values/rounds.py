"""How many rounds a loop over a range takes, and whether that was counted from the data.

`for _ in range(accumulation): batch = next(batches)` takes as many batches on each of N processes as on one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

#: A range, and one with a progress bar around it.
_RANGES = frozenset(f"{home}range" for home in ("builtins.", "tqdm.t", "tqdm.auto.t", "tqdm.notebook.t", "tqdm.std.t"))


def rounds(facts: Facts, over: ast.expr) -> ast.expr | None:
    """`steps` of `range(steps)`, `range(0, steps)`, `tqdm(range(steps))`."""
    numbers = range_of(facts, over)
    match numbers:
        case [number] | [ast.Constant(0), number]:
            return number
    return None


def lengths(facts: Facts, number: ast.expr) -> Iterator[ast.Call]:
    """What a number was counted from: `len(data)`, `len(loader)`."""
    for node in facts.once(Sources).behind([number]):
        for inner in ast.walk(node) if isinstance(node, ast.expr) else ():
            if isinstance(inner, ast.Call) and "builtins.len" in facts.called(inner):
                yield inner


def are_alike(facts: Facts, loop: ast.AST, anchor: ast.stmt) -> bool:
    """Whether a loop, and those around it up to `anchor`, take as many rounds on each process as on one."""
    around = [loop, *facts.tree(loop).loops(loop)]
    if anchor not in around:
        return False
    turns = around[: around.index(anchor) + 1]
    return all(_is_fixed(facts, each.iter) if isinstance(each, ast.For) else False for each in turns)


def _is_fixed(facts: Facts, over: ast.expr) -> bool:
    """Whether this is a range whose numbers do not go by how much data there is."""
    numbers = range_of(facts, over)
    return bool(numbers) and not any(True for number in numbers for _ in lengths(facts, number))


def range_of(facts: Facts, over: ast.expr) -> list[ast.expr]:
    """What a range is made of, also inside of a progress bar, and of a bar that has a name."""
    if isinstance(over, ast.Name):
        over = facts.once(Sources).given(over).only or over
    if not isinstance(over, ast.Call) or not over.args:
        return []
    return list(over.args) if facts.called(over) & _RANGES else range_of(facts, over.args[0])
