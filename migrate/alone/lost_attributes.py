"""Attributes that nothing sets any more, and that methods still read: `self.sampler.set_epoch(epoch)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import FUNCTIONS, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def lost_attributes(before: Mapping[str, ast.Module], now: Mapping[str, ast.Module]) -> Iterator[ast.Attribute]:
    """The reads, in the trees before, of attributes of their own that methods read in vain now."""
    stored = (node for tree in before.values() for node, _ in _own(tree, ast.Store))
    gone = {attribute.attr for attribute in stored} - _given(now.values())
    for path, tree in now.items() if gone else ():
        vain = {ast.unparse(around) for read, around in _own(tree, ast.Load) if read.attr in gone}
        was_read = (
            [(read, around) for read, around in _own(before[path], ast.Load) if read.attr in gone] if vain else []
        )
        yield from (read for read, around in was_read if ast.unparse(around) in vain)
        yield from (read for read, _ in was_read)


def _given(trees: Iterable[ast.Module]) -> set[str]:
    """The names of all that is set, or defined, as an attribute or in a class."""
    nodes = [node for tree in trees for node in walk(tree)]
    found = {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
    for statement in (statement for node in nodes if isinstance(node, ast.ClassDef) for statement in node.body):
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            found.add(getattr(statement, "name", ""))
        found |= {n.id for n in walk(statement).of(ast.Name) if isinstance(n.ctx, ast.Store)}
    return found


def _own(tree: ast.Module, context: type[ast.expr_context]) -> Iterator[tuple[ast.Attribute, ast.AST]]:
    """What methods read, or set, of the object that they are run on, each with what it stands in."""
    for cls in walk(tree).of(ast.ClassDef):
        for method in (statement for statement in cls.body if isinstance(statement, ast.FunctionDef)):
            own = next((argument.arg for argument in (*method.args.posonlyargs, *method.args.args)), None)
            for around in walk(method):
                for node in ast.iter_child_nodes(around):
                    if isinstance(node, ast.Attribute) and isinstance(node.ctx, context):
                        if isinstance(node.value, ast.Name) and node.value.id == own:
                            yield node, around
