"""What puts the samples of a batch together."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import data
from migrate.analysis.roles import Role
from migrate.analysis.syntax import walk
from migrate.analysis.units import Class, Function
from migrate.programs.evaluation.stacking import stacks
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

_NAME = "collate_fn"


class Collating:
    """What the loaders of a program are told to put samples together with."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        nodes = (node for module in facts.modules for node in facts.tree_of(module).nodes)
        given = ((to, node.value) for node in nodes if isinstance(node, ast.Assign) for to in node.targets)
        self._set = [(to.value, value) for to, value in given if isinstance(to, ast.Attribute) and to.attr == _NAME]

    def has_rows_first(self, loader: ast.AST) -> bool:
        """Whether the samples are the rows of what a loader gives, as torch itself puts them together."""
        return all(puts_rows_first(self._facts, each) for each in self._of(loader))

    def _of(self, loader: ast.AST) -> Iterator[ast.expr]:
        """What may put a loader's samples together: given where it is made, by its class, or set afterwards."""
        if isinstance(loader, ast.Call):
            yield from (keyword.value for keyword in loader.keywords if keyword.arg == _NAME)
            made = {*self._facts.values(loader), *self._facts.values(loader.func)}
            for cls in {value.unit for value in made if isinstance(value.unit, Class)}:
                yield from (given for each in cls.mro() for given in _in_class(each))
        for owner, value in self._set:
            if any(each.origin is loader for each in self._facts.values(owner)):
                yield value


def _in_class(cls: Class) -> Iterator[ast.expr]:
    """`super().__init__(data, collate_fn=pad)`, `self.collate_fn = pad`, `{"collate_fn": pad}` in a loader's class."""
    for node in walk(cls.node):
        if isinstance(node, ast.Call):
            yield from (keyword.value for keyword in node.keywords if keyword.arg == _NAME)
        elif isinstance(node, ast.Assign):
            yield from (node.value for to in node.targets if isinstance(to, ast.Attribute) and to.attr == _NAME)
        elif isinstance(node, ast.Dict):
            keys = zip(node.keys, node.values, strict=True)
            yield from (value for key, value in keys if isinstance(key, ast.Constant) and key.value == _NAME)


def puts_rows_first(facts: Facts, node: ast.expr, depth: int = 4) -> bool:
    """Whether a `collate_fn` is torch's own, or none, or stacks samples, whichever way it is chosen."""
    if isinstance(node, ast.Constant):
        return node.value is None
    if isinstance(node, (ast.BoolOp, ast.IfExp)):
        parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
        return all(puts_rows_first(facts, part, depth) for part in parts)
    given = facts.once(Sources).given(node)
    if given.expressions:
        return depth > 0 and given.complete and all(puts_rows_first(facts, e, depth - 1) for e in given.expressions)
    values = facts.values(node)
    return bool(values) and all(
        (v.role is Role.KNOWN and v.name in data.PUTS_ROWS_FIRST)
        or (isinstance(v.unit, Function) and v.role in (Role.FUNCTION, Role.METHOD) and stacks(facts, v.unit))
        for v in values
    )
