"""Loaders over what each process has gathered from its own share of other batches.

for prompts in prompt_loader:                  # each process has prompts of its own
    buffer.append(rollout(model, prompts))
    for batch in DataLoader(buffer): ...       # dealt out again: most of what it has would be left out
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import argument_at, arguments, line_of, targets_of
from migrate.programs.program import Refusal
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Loop
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import Loops

_NAMES = (ast.Name, ast.Attribute)
_WAY_OUT = (
    "go through them without a DataLoader, or give all processes what each has gathered before it is made: "
    "rows = gather_object(rows)"
)


def dealt_twice(facts: Facts, loops: Loops, loaders: Sequence[Named]) -> Iterator[Refusal]:
    """The loaders that are made of the batches of another one, in a loop over that."""
    dealt = {origin for named in loaders for origin in named.origins}
    for named in loaders:
        for made in (facts.source(origin) for origin in named.origins):
            around = loops.around(made, facts.unit(made)) if isinstance(made, ast.Call) else ()
            for loop in around:
                if loops.loaders(loop) & dealt - named.origins and _is_of_batches(facts, made, loop):
                    what = f"the data of {named.target} are what each process has gathered from its own share of the"
                    why = f"{what} batches in line {line_of(loop)}: dealt out again, a part of them would be trained on"
                    yield Refusal(made, "MIG104", why, _WAY_OUT)
                    return


def _is_of_batches(facts: Facts, made: ast.AST, loop: Loop) -> bool:
    """Whether what a loader deals out comes from the batches that a loop takes."""
    data = argument_at(made, 0, "dataset") if isinstance(made, ast.Call) else None
    own = _own(loop) if data is not None else set()
    inside = set(ast.walk(loop))
    behind = (node for each in facts.once(Sources).behind([data] if data else []) for node in ast.walk(each))
    return any(node in inside and not own.isdisjoint(_read(node)) for node in behind if isinstance(node, _NAMES))


def _own(loop: Loop) -> set[str]:
    """The names that hold a batch of a loop, or what it has computed of one, or put one into."""
    own = _written(loop.target) if isinstance(loop, (ast.For, ast.AsyncFor)) else set()
    size = -1
    while own and size < len(own):
        size = len(own)
        for node in ast.walk(loop):
            for given, target in _handed(node):
                if any(not own.isdisjoint(_read(each)) for each in given):
                    own |= _written(target)
    return own


def _handed(node: ast.AST) -> Iterator[tuple[Sequence[ast.expr], ast.expr]]:
    """What a statement reads, with what gets it: `x = f(batch)`, `for row in batch:`, `rows.append(x)`."""
    if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
        yield from (([node.value], target) for target in targets_of(node))
    elif isinstance(node, (ast.For, ast.AsyncFor)):
        yield [node.iter], node.target
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        if isinstance(node.value.func, ast.Attribute):
            yield arguments(node.value), node.value.func.value


def _read(node: ast.expr) -> set[str]:
    return {ast.unparse(inner) for inner in ast.walk(node) if isinstance(inner, _NAMES)}


def _written(target: ast.expr) -> set[str]:
    """The names in `x, (y, self.z)`; of an item, what it is put into."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return set().union(*map(_written, target.elts))
    inner = target.value if isinstance(target, (ast.Starred, ast.Subscript)) else target
    return {ast.unparse(inner)}
