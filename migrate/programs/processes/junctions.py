"""Where code decides what runs: statements, expressions and comprehensions alike, each a test with its sides.

`if loss < 5: optimizer.step()`, `optimizer.step() if loss < 5 else None`, `loss < 5 and optimizer.step()`: one thing.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from migrate.analysis.syntax import Tree


@dataclass(frozen=True, slots=True)
class Junction:
    """What is asked at a node, and what runs by the answer.

    Of a truth, the first side runs if it holds and the second if it does not. Without `is_truth` something else than
    True or False is wanted, so no other test may take its place.
    """

    node: ast.AST
    test: ast.expr
    sides: tuple[tuple[ast.AST, ...], ...]
    is_truth: bool = True

    def decides(self, node: ast.AST) -> bool:
        """Whether a node stands in one of the sides."""
        return node not in walk(self.test) and any(node in walk(part) for side in self.sides for part in side)


def junctions(tree: Tree, node: ast.AST) -> Iterator[Junction]:
    """What a node decides itself; nothing for most nodes."""
    if (find := _FINDING.get(type(node))) is not None:
        yield from find(tree, node)


def is_elif(tree: Tree, node: ast.If) -> bool:
    """Whether a branch is written as the `elif` of another one, and so is no statement of its own there."""
    above = tree.parents[node]
    return isinstance(above, ast.If) and above.orelse == [node] and above.col_offset == node.col_offset


def iterated(node: ast.AST) -> list[ast.expr]:
    """What a loop or a comprehension runs over."""
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return [node.iter]
    return [generator.iter for generator in getattr(node, "generators", ())]


def _statement(_: Tree, node: ast.If | ast.While) -> Iterator[Junction]:
    orelse = node.orelse if isinstance(node, ast.If) else []  # what follows a loop comes in either case
    yield Junction(node, node.test, (tuple(node.body), tuple(orelse)))


def _assertion(_: Tree, node: ast.Assert) -> Iterator[Junction]:
    yield Junction(node, node.test, ((), (node,)))


def _conditional(_: Tree, node: ast.IfExp) -> Iterator[Junction]:
    yield Junction(node, node.test, ((node.body,), (node.orelse,)))


def _operands(tree: Tree, node: ast.BoolOp) -> Iterator[Junction]:
    """Each operand decides whether those behind it are asked; the value of one is that of the whole, if it is used."""
    is_statement = isinstance(tree.parents.get(node), ast.Expr)
    for number, test in enumerate(node.values[:-1], start=1):
        rest = tuple(node.values[number:])
        yield Junction(node, test, (rest, ()) if isinstance(node.op, ast.And) else ((), rest), is_statement)


def _comprehension(_: Tree, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Iterator[Junction]:
    made = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
    for number, generator in enumerate(node.generators, start=1):
        if _is_counted(generator.iter):
            yield Junction(node, generator.iter, (made, ()), is_truth=False)
        for test in generator.ifs:
            yield Junction(node, test, ((*made, *(inner.iter for inner in node.generators[number:])), ()))


def _cases(_: Tree, node: ast.Match) -> Iterator[Junction]:
    yield Junction(node, node.subject, (*(tuple(case.body) for case in node.cases), ()), is_truth=False)


def _rounds(_: Tree, node: ast.For) -> Iterator[Junction]:
    if _is_counted(node.iter):
        yield Junction(node, node.iter, (tuple(node.body), ()), is_truth=False)


def _is_counted(rounds: ast.expr) -> bool:
    """`range(n)`: how often is a number, and not how much there is of something."""
    return isinstance(rounds, ast.Call) and isinstance(rounds.func, ast.Name) and rounds.func.id == "range"


_FINDING: dict[type[ast.AST], Callable[..., Iterator[Junction]]] = {
    ast.If: _statement,
    ast.While: _statement,
    ast.Assert: _assertion,
    ast.IfExp: _conditional,
    ast.BoolOp: _operands,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Match: _cases,
    ast.For: _rounds,
}
