"""Where a number is read: under the names and attributes that it is given to, and in the functions that are handed it.

batches = len(loader)
evaluate(model, batches)       # and what evaluate() reads under the name of its parameter
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from migrate.analysis.syntax import is_stored
from migrate.programs.values.lengths import COUNTING
from migrate.programs.values.scopes import bound_in_scope
from migrate.programs.values.sources import Sources, given_by, received

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function


class Reader(NamedTuple):
    """A place that reads a number, and whether it is still what it was where it was taken."""

    node: ast.expr
    is_plain: bool  # False: something was computed from it on the way


def readers(facts: Facts, taken: ast.expr) -> tuple[Reader, ...]:
    """The places that a number comes to, the last of each way; the place itself where nothing is given it."""
    found: dict[Reader, None] = {}
    waiting, seen = [Reader(taken, is_plain=True)], {taken}
    while waiting:
        reader = waiting.pop()
        whole = _whole(facts, reader)
        later = _given(facts, whole)
        if later is None:
            found[reader] = None
            continue
        waiting += [Reader(node, whole.is_plain) for node in later if node not in seen]
        seen.update(later)
    return tuple(found)


def _whole(facts: Facts, reader: Reader) -> Reader:
    """What is computed with a number, as far as it stands in the same expression."""
    tree = facts.tree(reader.node)
    above = tree.parents[reader.node]
    while isinstance(above, (ast.BinOp, ast.UnaryOp)) or (
        isinstance(above, ast.Call) and above.func is not reader.node and facts.called(above) & COUNTING
    ):
        reader = Reader(above, is_plain=False)
        above = tree.parents[above]
    return reader


def _given(facts: Facts, reader: Reader) -> list[ast.expr] | None:
    """Where it is read under the names that it is given to here; None: it is read here, and given to none."""
    node = reader.node
    parents = facts.tree(node).parents
    above = parents[node]
    if isinstance(above, ast.keyword):
        above = parents[above]
    if isinstance(above, ast.Call):
        units = facts.targets(above)
        named = [(unit, name) for unit in units for name, given in received(above, unit).items() if given is node]
        return [each for unit, name in named for each in facts.once(Loaded).parameter(unit, name)] if named else None
    statement = parents[above] if isinstance(above, ast.Tuple) else above
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return None
    targets = [each for target in _targets(statement) for each in (getattr(target, "elts", [target]))]
    mine = [each for each in targets if given_by(statement, ast.unparse(each)) is node]
    if not mine or not all(isinstance(each, (ast.Name, ast.Attribute)) for each in mine):
        return None
    return [read for each in mine for read in facts.once(Loaded).under(each, statement, node)]


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


class Loaded:
    """The places of a program that read names and attributes, by what these are called."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self.names: dict[str, list[ast.Name]] = {}
        self.attributes: dict[str, list[ast.Attribute]] = {}
        for module in facts.modules:
            for node in facts.tree_of(module).nodes:
                if isinstance(node, ast.Name) and not is_stored(node):
                    self.names.setdefault(node.id, []).append(node)
                elif isinstance(node, ast.Attribute) and not is_stored(node):
                    self.attributes.setdefault(node.attr, []).append(node)

    def reads(self, target: ast.expr) -> bool:
        """Whether anything reads a name, or an attribute, that is called like a target; of others that is not known."""
        if isinstance(target, ast.Name):
            return bool(self.names.get(target.id))
        return not isinstance(target, ast.Attribute) or bool(self.attributes.get(target.attr))

    def parameter(self, unit: Function, name: str) -> Iterator[ast.expr]:
        """Where a parameter is read in its function, and in those inside of it."""
        inside = {unit, *self._facts.nested(unit)}
        return (node for node in self.names.get(name, ()) if self._facts.unit(node) in inside)

    def under(self, target: ast.expr, statement: ast.stmt, given: ast.expr) -> Iterator[ast.expr]:
        """Where what a statement gives to a target may be read."""
        sources = self._facts.once(Sources)
        if isinstance(target, ast.Attribute):
            yield from (n for n in self.attributes.get(target.attr, ()) if given in sources.given(n).expressions)
            return
        assert isinstance(target, ast.Name)
        for node in self.names.get(target.id, ()):
            if given in sources.given(node).expressions and self._is_last(node, statement):
                yield node

    def _is_last(self, node: ast.expr, statement: ast.stmt) -> bool:
        """Whether no other statement of the function has certainly given the name something else by then."""
        if self._facts.unit(node) is not self._facts.unit(statement) or not isinstance(node, ast.Name):
            return True
        tree = self._facts.tree(node)
        for other in (binding.statement for binding in bound_in_scope(self._facts, node)):
            if statement.lineno < other.lineno < node.lineno and tree.in_block(node, tree.block(other)) is not None:
                return False
        return True
