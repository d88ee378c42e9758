"""Training loops that take a loader's batches together with rows that belong to whole batches.

    for expert, played in zip(loader, rollouts.batches(loader.batch_size)):
    for i, (x, y) in enumerate(loader):
        weight = weights[i * size:(i + 1) * size]

prepare would give each process its part of one and all of the other, or rows that belong to another process's batch. So
every process runs over whole batches, as in any training without a loader.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.nodes import children
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import reads, same, walk, writes
from migrate.programs.values.content import made_from
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Loop

_COUNTS = frozenset({Role.NUMBER, Role.TEXT})


def in_step(facts: Facts, batches: Mapping[Loop, tuple[Loop, frozenset[ast.AST]]]) -> set[ast.AST]:
    """Where the loaders were made whose batches meet such rows.

    `batches` has for each training loop the loop around it that takes its batches, and where their loaders were made.
    """
    zipped = (_zipped(facts, loop.iter) for loop in batches if isinstance(loop, ast.For))
    numbered = (loaders for loop, loaders in batches.values() if any(_numbered(facts, loop, loaders)))
    return set().union(*zipped, *numbered)


def _zipped(facts: Facts, iterated: ast.expr) -> set[ast.AST]:
    for call in walk(iterated):
        if isinstance(call, ast.Call) and "builtins.zip" in facts.called(call):
            made = [facts.loaders(facts.values(argument)) for argument in call.args]
            others = [argument for argument, found in zip(call.args, made, strict=True) if not found]
            if any(_is_dealt_out(facts, other) for other in others):
                return set().union(*made)
    return set()


def _is_dealt_out(facts: Facts, node: ast.expr) -> bool:
    """Whether a generator of the project gives what is iterated, and not only numbers."""
    made = [node, *(facts.once(Sources).given(node).expressions if isinstance(node, ast.Name) else ())]
    targets = [target for each in made if isinstance(each, ast.Call) for target in facts.targets(each)]
    return any(
        isinstance(inner, ast.Yield) and not (target.yields and roles(target.yields) <= _COUNTS)
        for target in targets
        for inner in facts.own(target)
    )


def _numbered(facts: Facts, loop: Loop, loaders: frozenset[ast.AST]) -> Iterator[ast.Subscript]:
    """Rows that are picked by the number of the batch: the i-th batch of a process is not the i-th of the data."""
    sliced = [
        (node, bounds)
        for node in walk(loop).of(ast.Subscript)
        if isinstance(node.ctx, ast.Load)
        and (bounds := {name for part in walk(node.slice).of(ast.Slice) for name in _asked(part)})
    ]
    counters = _counters(facts, loop) if sliced else set()
    batches = set(_numbers(facts, loop)) if isinstance(loop, (ast.For, ast.AsyncFor)) else set()
    for node, bounds in sliced:
        if not bounds & counters or made_from(facts, loaders, node.value) or _is_history(node.value, loop, batches):
            continue
        if not _is_up_to(node.slice, batches):
            yield node


def _is_history(node: ast.expr, loop: Loop, numbers: set[str]) -> bool:
    """Whether a list or an array is filled as the loop goes: it has what this process did, in its own order.

    An array gets one entry for each batch, `losses[i] = loss.item()`; `seen[rows] = loss` has the rows of the data.
    """
    for inner in walk(loop):
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
            if inner.func.attr in ("append", "extend") and same(inner.func.value, node):
                return True
        elif isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store) and same(inner.value, node):
            if isinstance(inner.slice, ast.Name) and inner.slice.id in numbers:
                return True
    return False


def _is_up_to(node: ast.expr, numbers: set[str]) -> bool:
    """Whether a slice takes one entry for each batch so far, `steps[:i + 1]`: these are no rows of a batch."""
    if not isinstance(node, ast.Slice) or node.lower is not None or node.step is not None:
        return False
    bound = node.upper.left if isinstance(node.upper, ast.BinOp) and _is_shift(node.upper) else node.upper
    return isinstance(bound, ast.Name) and bound.id in numbers


def _is_shift(node: ast.BinOp) -> bool:
    return isinstance(node.op, (ast.Add, ast.Sub)) and isinstance(node.right, ast.Constant)


def _counters(facts: Facts, loop: Loop) -> set[str]:
    """The names that go by how many batches there were, of enumerate() or `i += 1`, and what is computed from them."""
    assigned = [node for node in walk(loop) if isinstance(node, ast.Assign)]
    computed = [(writes(node), set(_asked(node.value))) for node in assigned if _is_arithmetic(node.value)]
    anew = {n for a in assigned if _is_unasked(facts, a, loop) for n in writes(a) - reads(a.value)}
    found = {n for node in walk(loop) if isinstance(node, ast.AugAssign) for n in writes(node.target)}
    found = (found | {name for made, read in computed for name in made & read}) - anew
    found |= set(_numbers(facts, loop)) if isinstance(loop, (ast.For, ast.AsyncFor)) else set()
    while more := {name for made, read in computed if read & found for name in made} - found:
        found |= more
    return found


def _numbers(facts: Facts, loop: ast.For | ast.AsyncFor) -> Iterator[str]:
    """The names that a loop gives numbers to: `for i, batch in enumerate(loader)`, `in zip(range(n), loader)`."""
    parts = loop.target.elts if isinstance(loop.target, ast.Tuple) else [loop.target]
    is_zipped = isinstance(loop.iter, ast.Call) and "builtins.zip" in facts.called(loop.iter)
    given = loop.iter.args if isinstance(loop.iter, ast.Call) and is_zipped else [None] * len(parts)
    for part, argument in zip(parts, given, strict=False):
        counts = isinstance(argument, ast.Call) and facts.called(argument) & {"builtins.range", "itertools.count"}
        if isinstance(part, ast.Name) and (counts or Role.NUMBER in roles(facts.values(part))):
            yield part.id


def _is_unasked(facts: Facts, node: ast.stmt, loop: Loop) -> bool:
    """Whether a statement runs in each round of a loop, whatever is asked there."""
    around = facts.tree(node).up(node)
    return not any(isinstance(above, ast.If) for above in iter(lambda: next(around, loop), loop))


def _is_arithmetic(node: ast.expr) -> bool:
    """`i * size`, `min(start + size, len(rows))`: what is computed from numbers with nothing but them."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("min", "max", "int") and bool(node.args)
    return isinstance(node, (ast.BinOp, ast.Name))


def _asked(node: ast.AST) -> Iterator[str]:
    """The names by whose values a number goes; not those that are asked for their size."""
    if isinstance(node, ast.Name):
        yield node.id
    is_size = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len"
    for child in () if is_size or isinstance(node, ast.Attribute) else children(node):
        yield from _asked(child)
