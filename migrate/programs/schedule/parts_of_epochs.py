"""Epochs that end before the data do, after a number of samples: `for x, y in islice(loader, samples // batch_size):`.

That number is one of batches, so each of N processes takes as many of its own, and all together N times the samples.
So it is with `zip(range(steps), loader)`, with batches that `next` takes, and with a loop that is left by `break`. A
number of all samples is none of these: there each process comes to the end of its share first.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import argument_at, arguments, walk
from migrate.programs.values.cut import counted_take
from migrate.programs.values.rounds import range_of
from migrate.programs.values.sources import Sources
from migrate.programs.values.takes import taken

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact

_MOST = frozenset({"itertools.islice"})
_DIVISIONS = (ast.Div, ast.FloorDiv)
_AT_LEAST = (ast.Eq, ast.Gt, ast.GtE)


def parts_of_epochs(facts: Facts, loop: LoopFact) -> Iterator[ast.expr]:
    """The numbers after which a training loop ends that were counted from samples, by the size of a batch."""
    sizes = {text for made in loop.loaders for text in _size(facts, made)}
    for number in dict.fromkeys((*_taken(facts, loop), *_left_after(loop))):
        behind = facts.once(Sources).behind([number])
        divisions = [node for each in behind for node in walk(each).of(ast.BinOp) if isinstance(node.op, _DIVISIONS)]
        if any(sizes & {*_texts(facts, each.right)} and not _is_of_all(facts, each.left) for each in divisions):
            yield number


def _taken(facts: Facts, loop: LoopFact) -> Iterator[ast.expr]:
    """How many batches a loop says that it takes: `islice(loader, 8)`, `zip(range(8), loader)`, or by `next`."""
    over = loop.node.iter if isinstance(loop.node, ast.For) else None
    for call in walk(over).of(ast.Call) if over is not None else ():
        names = facts.called(call)
        if names & _MOST:
            yield from call.args[2:3] or call.args[1:2]
        elif "builtins.zip" in names:
            yield from (number for each in call.args for number in range_of(facts, each)[-1:])
    for call in walk(loop.node).of(ast.Call):
        if taken(facts, call) and (take := counted_take(facts, call)) is not None:
            yield take.number


def _left_after(loop: LoopFact) -> Iterator[ast.expr]:
    """`if i >= steps: break`."""
    for node in walk(loop.node).of(ast.If):
        match node.test:
            case ast.Compare(ops=[operator], comparators=[number]) if isinstance(operator, _AT_LEAST):
                if any(isinstance(each, ast.Break) for each in node.body):
                    yield number


def _size(facts: Facts, made: ast.AST) -> Iterator[str]:
    """What a loader was told to put into a batch, and what its names for that are."""
    source = facts.source(made)
    size = argument_at(source, 1, "batch_size") if isinstance(source, ast.Call) else None
    if size is not None:
        yield from _texts(facts, size)


def _texts(facts: Facts, node: ast.expr) -> Iterator[str]:
    """How a number is written, a plain one too: `1000 // 64` beside `batch_size=64`."""
    yield ast.unparse(node)
    yield from map(ast.unparse, facts.once(Sources).given(node).expressions)


def _is_of_all(facts: Facts, number: ast.expr) -> bool:
    """Whether a number is that of all samples: `len(data)`, `x.shape[0]`."""
    given = facts.once(Sources).given(number)
    if isinstance(number, ast.Name) and given.expressions:
        return all(_is_of_all(facts, each) for each in given.expressions)
    is_length = isinstance(number, ast.Call) and "builtins.len" in facts.called(number) and len(arguments(number)) == 1
    return is_length or ast.unparse(number).endswith((".shape[0]", ".size(0)"))
