"""Names, attributes and items as places that keep something: by what is written they are one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_stored, targets_of, walk
from migrate.analysis.texts import text_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from migrate.analysis.facts import Facts

#: Methods that put what they are given into their object.
FILLING = frozenset("append extend add insert update appendleft extendleft push put setdefault".split())
_COMPUTING = frozenset(f"builtins.{name}" for name in ("sum", "len", "min", "max"))  # of a list


def is_place(node: ast.expr) -> bool:
    """Whether an expression is a name, an attribute, or an item whose key is written out."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and is_place(node.value)
    if isinstance(node, ast.Attribute):
        return is_place(node.value)
    return isinstance(node, ast.Name)


def root_of(place: str) -> str:
    """The name that a place begins with, as it is written: `log` of `log.sums['loss']`."""
    return place.partition(".")[0].partition("[")[0]


def uses(root: ast.AST, name: str) -> Iterator[ast.expr]:
    """Where code reads or sets a name or an attribute, by what is written."""
    last = name.rpartition(".")[2]
    for node in walk(root):
        if (isinstance(node, ast.Name) and node.id == last) or (isinstance(node, ast.Attribute) and node.attr == last):
            if ast.unparse(node) == name:
                yield node


def sets(statement: ast.Assign | ast.AnnAssign, name: str) -> bool:
    """Whether a statement gives a place its value, or makes the dictionary that it is an item of."""
    wholes = {name, name.partition("[")[0]}
    return any(
        isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(node) in wholes and is_stored(node)
        for target in targets_of(statement)
        for node in ast.walk(target)
    )


def is_read(parents: Mapping[ast.AST, ast.AST], node: ast.AST, name: str) -> bool:
    """Whether a node reads a place, or the dictionary that it is an item of; `self.total` on any object."""
    if isinstance(node, ast.AugAssign):
        return not isinstance(node.op, ast.Add) and ast.unparse(node.target) == name
    if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) or not isinstance(node.ctx, ast.Load):
        return False
    if is_adding(parents.get(node)):
        return False
    if "[" not in name:
        return isinstance(node, ast.Attribute) and node.attr == name.rpartition(".")[2]
    above = parents.get(node)
    if isinstance(above, ast.Subscript) and isinstance(above.slice, ast.Constant) and node is above.value:
        return False
    return ast.unparse(node) in (name, name.partition("[")[0])


def is_adding(node: ast.AST | None) -> bool:
    """Whether a node is the method of a tensor that adds to it where it stands: `total.add_`."""
    return isinstance(node, ast.Attribute) and node.attr == "add_"


def divisors_of(nodes: Collection[ast.AST], name: str) -> Iterator[ast.expr]:
    """What a place is divided by, or anything that is taken from its dictionary."""
    attribute, taken = name.rpartition(".")[2], taken_from(nodes, name.partition("[")[0])
    for node in nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            divided, divisor = node.left, node.right
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
            divided, divisor = node.target, node.value
        else:
            continue
        parts = list(ast.walk(divided))
        if name.isidentifier():
            is_meant = any(isinstance(part, ast.Name) and part.id == name for part in parts)
        elif "[" not in name:
            is_meant = any(isinstance(part, ast.Attribute) and part.attr == attribute for part in parts)
        else:
            is_meant = any(_is_item(part, name, taken) for part in parts)
        if is_meant:
            yield divisor


def taken_from(nodes: Collection[ast.AST], base: str) -> set[str]:
    """The names of what is taken from a dictionary one by one: `for key, value in log.items()`."""
    return {
        inner.id
        for node in nodes
        if isinstance(node, (ast.For, ast.comprehension)) and base in map(ast.unparse, _expressions(node.iter))
        for inner in ast.walk(node.target)
        if isinstance(inner, ast.Name)
    }


def _expressions(node: ast.expr) -> Iterator[ast.expr]:
    return (inner for inner in ast.walk(node) if isinstance(inner, (ast.Name, ast.Attribute)))


def _is_item(node: ast.AST, name: str, taken: Collection[str]) -> bool:
    """Whether a node is an item of a dictionary, or may be: `log[key]`, `value`."""
    if isinstance(node, ast.Name):
        return node.id in taken
    if not isinstance(node, ast.Subscript) or ast.unparse(node.value) != name.partition("[")[0]:
        return False
    return not isinstance(node.slice, ast.Constant) or ast.unparse(node) == name


def filled(call: ast.Call) -> ast.expr:
    """What a method puts something into; `log` of `log.setdefault(key, []).append(x)`."""
    assert isinstance(call.func, ast.Attribute)
    inner = call.func.value
    is_default = isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute)
    if is_default and isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        return inner.func.value if inner.func.attr == "setdefault" else inner
    return inner


def place_of(node: ast.expr) -> set[str]:
    """A name, attribute or item, as it is written; of an item whose key is not written out, what it is one of."""
    if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
        return place_of(node.value)
    return {text_of(node)} if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else set()


def written(target: ast.expr) -> set[str]:
    """The names, attributes and items that a target gives a value, as they are written."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return {text for element in target.elts for text in written(element)}
    if isinstance(target, ast.Starred):
        return written(target.value)
    return place_of(target)


def set_in(statement: ast.stmt) -> set[str]:
    """What a statement gives a value, and the statements in it."""
    found: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            found |= place_of(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLING:
            found |= place_of(filled(node))
    return found


def is_only_read(facts: Facts, nodes: Iterable[ast.AST], name: str) -> bool:
    """Whether code, beside appending to a list, only computes with it: `bar.set_postfix(loss=np.mean(losses))`."""
    for node in nodes:
        if not (isinstance(node, ast.Name) and node.id == name):
            continue
        match facts.tree(node).parents.get(node):
            case ast.Attribute(attr="append" | "extend") | ast.AugAssign():
                continue
            case ast.Subscript(ctx=ast.Load(), value=value) if value is node:
                continue
            case ast.Call() as call if node in call.args and _computes(facts, call):
                continue
        return False
    return True


def _computes(facts: Facts, call: ast.Call) -> bool:
    """Whether a call makes a number of a list, and leaves it as it is."""
    names = facts.called(call)
    return bool(names) and all(name in _COMPUTING or name.startswith(("numpy.", "statistics.")) for name in names)
