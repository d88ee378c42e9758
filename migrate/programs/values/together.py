"""Lists that code goes through together: `zip(scores, labels)`, `roc_auc_score(torch.cat(labels), scores)`.

Entry by entry they belong together: of all processes are all of them, or none. So are sums of all entries that meet in
a number: `sum(losses) / sum(counts)`, and a count with what is divided by it: `totals[name] / samples`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.known.tensors import FOLDING_WITHOUT_DIM
from migrate.analysis.nodes import children
from migrate.analysis.syntax import COMPREHENSIONS, blocks, own_expressions
from migrate.programs.values.kept import FILLING
from migrate.programs.values.sources import received

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from migrate.analysis.facts import Facts

_NOTHING: frozenset[str] = frozenset()
_GROWING = frozenset("sum len nansum count_nonzero".split())
_COUNTING = frozenset("range arange linspace".split())
_JOINING = (ast.Call, ast.BinOp, ast.Compare, ast.Subscript)
_DEEPEST = 2  # calls between what a loop leaves and what divides it


def together(
    facts: Facts,
    later: Sequence[ast.stmt],
    names: Collection[str],
    one: Collection[str],
    counts: Collection[str] = _NOTHING,
) -> set[str]:
    """Of the names of lists, those that statements bring together with one of some others, or with what these meet.

    `counts`: what numbers the steps of one process, `steps`, `len(loader)`; `range(steps)` is such another list.
    """
    met = _Met(facts, {name: frozenset({name}) for name in (*names, *one)}, counts=frozenset(counts))
    met.block(later)
    return _closed([*met.groups, met.left], names, {*one, *counts})


def only_divided(later: Sequence[ast.stmt], name: str) -> bool:
    """Whether a list is only divided, or its mean, its length or entries are taken: `sum(losses) / len(loader)`."""
    nodes = [node for statement in later for node in ast.walk(statement)]
    parts = [node.left for node in nodes if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)]
    parts += [node for node in nodes if isinstance(node, ast.Call) and (_folds(node) or _name(node) == "len")]
    parts += [node for node in nodes if isinstance(node, ast.Subscript)]
    inside = {inner for part in parts for inner in ast.walk(part)}
    return all(node in inside for node in nodes if isinstance(node, ast.Name) and node.id == name)


def goes_by_order(later: Sequence[ast.stmt], name: str) -> bool:
    """Whether statements read a list otherwise than to fold it, `sum(losses)`, to count its entries, or to add some."""
    nodes = [node for statement in _until_set(later, name) for node in ast.walk(statement)]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    folded = {given for call in calls if _is_of_whole(call, _FREE) for given in _of(call)}
    filled = {c.func.value for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr in FILLING}
    named = (node for node in nodes if isinstance(node, ast.Name) and node.id == name)
    return any(node not in folded | filled and isinstance(node.ctx, ast.Load) for node in named)


def _until_set(later: Sequence[ast.stmt], name: str) -> Iterator[ast.stmt]:
    """Statements up to one that gives a name another value, and that one."""
    for statement in later:
        yield statement
        if isinstance(statement, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == name for t in statement.targets
        ):
            return


#: What comes out the same of numbers in any order.
_FREE = frozenset("len sorted average fmean nanmean nansum nanmedian stdev pstdev".split()) | (
    FOLDING_WITHOUT_DIM - {"argmax", "argmin"}
)


def _of(call: ast.Call) -> list[ast.expr]:
    """What a function is given, or what the method is called of."""
    return [*call.args, *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]


def divided(facts: Facts, later: Sequence[ast.stmt], names: Collection[str], one: Collection[str]) -> set[str]:
    """Of the names of sums, those by which statements divide one of some others, and what else is divided by these."""
    met = _Divided(facts, {name: frozenset({name}) for name in (*names, *one)})
    met.block(later)
    return _closed(met.groups, names, one)


def is_cut(later: Sequence[ast.stmt], name: str) -> bool:
    """Whether statements take entries of a list by their place: `losses[-1]`, `np.mean(losses[-10:])`."""
    nodes = (node for statement in later for node in ast.walk(statement) if isinstance(node, ast.Subscript))
    return any(isinstance(node.value, ast.Name) and node.value.id == name for node in nodes)


def quotients(facts: Facts, later: Sequence[ast.stmt], name: str) -> list[ast.expr]:
    """What statements divide something by that grows with the entries of a list: `sum(losses) / len(loader)`."""
    met = _Quotients(facts, {name: frozenset({name})})
    met.block(later)
    return met.divisors


def _closed(groups: Collection[frozenset[str]], names: Collection[str], one: Collection[str]) -> set[str]:
    """Of some names, those that groups bring together with one of some others, or with what these meet."""
    found = set(one)
    for _ in names:
        found |= {name for group in groups if group & found for name in group}
    return found & set(names)


@dataclass(slots=True)
class _Met:
    """What statements make of lists, by the names that hold something of their entries."""

    facts: Facts
    held: dict[str, frozenset[str]]
    groups: list[frozenset[str]] = field(default_factory=list)
    left: frozenset[str] = _NOTHING  # given back, or kept in objects: who takes one takes the others
    counts: frozenset[str] = _NOTHING

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            self._statement(statement)
            for inner in blocks(statement):
                self.block(inner)

    def _statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.For):
            self._set(statement.target, self._of(statement.iter))
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                self._give(target, statement.value)
        elif isinstance(statement, ast.AugAssign):
            found = self._of(statement.target) | self._of(statement.value)
            self._meet(statement, found)
            self._set(statement.target, found)
        elif isinstance(statement, ast.Return) and statement.value is not None:
            self.left |= self._of(statement.value)
        else:
            for part in own_expressions(statement):
                self._of(part)

    def _give(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for to, given in [(to, self._of(given)) for to, given in zip(target.elts, value.elts, strict=True)]:
                self._set(to, given)
        else:
            self._set(target, self._of(value))

    def _set(self, target: ast.AST, given: frozenset[str]) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.held[node.id] = given
            elif isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
                self.left |= given

    def _of(self, node: ast.AST) -> frozenset[str]:
        """The lists of whose entries an expression holds something."""
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and (held := self._under(ast.unparse(node))):
            return held
        if self.counts and isinstance(node, ast.Call) and _name(node) in _COUNTING:
            return self.counts.intersection(ast.unparse(inner) for inner in ast.walk(node))
        if isinstance(node, COMPREHENSIONS):
            for part in node.generators:
                self._set(part.target, self._of(part.iter))
        found = _NOTHING.union(*map(self._of, children(node)))
        self._meet(node, found)
        return _NOTHING if isinstance(node, ast.Call) and _folds(node) else found

    def _under(self, name: str) -> frozenset[str]:
        """What a place holds; a dictionary, what its items hold."""
        items = (held for place, held in self.held.items() if place.startswith(f"{name}["))
        return self.held[name] if name in self.held else _NOTHING.union(*items)

    def _meet(self, node: ast.AST, found: frozenset[str]) -> None:
        if isinstance(node, (*_JOINING, ast.AugAssign)) and not self._is_shown(node):
            self.groups.append(found)

    def _is_shown(self, node: ast.AST) -> bool:
        """`print(scores, labels)`: side by side on the screen."""
        return isinstance(node, ast.Call) and "builtins.print" in self.facts.called(node)


@dataclass(slots=True)
class _Divided(_Met):
    """The same, of what is divided alone, by statements and by the functions of the project that they call."""

    depth: int = _DEEPEST

    def _meet(self, node: ast.AST, found: frozenset[str]) -> None:
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, (ast.Div, ast.FloorDiv)):
            self.groups.append(found)
        elif isinstance(node, ast.Call) and len(found) > 1 and self.depth > 0:
            for unit in self.facts.targets(node):
                given = {name: self._of(value) for name, value in received(node, unit).items()}
                inner = _Divided(self.facts, given, self.groups, depth=self.depth - 1)
                inner.block(unit.body)


@dataclass(slots=True)
class _Quotients(_Met):
    """By what statements divide what they hold of lists."""

    divisors: list[ast.expr] = field(default_factory=list)

    def _meet(self, node: ast.AST, found: frozenset[str]) -> None:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and self._of(node.left):
            self.divisors.append(node.right)
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div) and self._of(node.target):
            self.divisors.append(node.value)


def _folds(call: ast.Call) -> bool:
    """`np.mean(losses)`, `losses.mean()`: one number of all entries, which does not grow with how many there are."""
    return _is_of_whole(call, FOLDING_WITHOUT_DIM - _GROWING)


def _is_of_whole(call: ast.Call, names: Collection[str]) -> bool:
    """Whether a call of one of some names takes all entries of a list, and no more."""
    return _name(call) in names and len(call.args) < 2 and not call.keywords


def _name(call: ast.Call) -> str:
    """What a function or method is called where it is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
