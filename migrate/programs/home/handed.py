"""Loaders that an `__init__` is handed and prepares for its object: others go on with the raw ones by the old names.

    trainer = Trainer(model, loader)          # self.loader is prepared
    for x, y in loader: ...                   # each process would have all batches

To look at such a loader, `len(loader)`, is harmless; what runs over it, or keeps something that does, is not.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.construction import is_constructor
from migrate.analysis.known.progress import BARS
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import arguments
from migrate.analysis.units import Class, Function
from migrate.programs.values.handed_as import handed_as

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.analysis.syntax import Tree
    from migrate.analysis.units import Unit
    from migrate.programs.home.naming import Named

_RUNNING = (
    BARS | {f"builtins.{name}" for name in "enumerate zip iter list tuple next sorted".split()} | {"itertools.cycle"}
)


def others_run_raw(facts: Facts, unit: Unit, loaders: Iterable[Named]) -> bool:
    """Whether an `__init__` would prepare a loader that it is handed, and another goes over that as it was.

    Or gives the object another one, which nothing would prepare.
    """
    if not is_constructor(unit):
        return False
    attributes = {named.target: named for named in loaders if named.target.startswith("self.")}
    mine = {o for named in attributes.values() for o in named.origins if not facts.singles.is_made_in(unit, o)}
    raw = _Raw(facts, unit, mine)
    for where, name, line in _names(facts, unit, mine) if mine else ():
        for node in _reads(facts, where, name):
            is_later = facts.unit(node) is not where or node.lineno > line
            if is_later and raw.is_run(node):
                return True
    given = (_given_anew(facts, unit, target.removeprefix("self.")) for target in attributes) if mine else ()
    return any(True for each in given for _ in each)


def _given_anew(facts: Facts, home: Function, name: str) -> Iterator[ast.Attribute]:
    """Where the object is given something else by code that is not its own."""
    assert home.owner is not None
    for unit in facts.units:
        if isinstance(unit, Function) and unit.owner is not None and unit.owner.is_related(home.owner):
            continue
        for node in facts.own(unit):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == name:
                owners = (value.unit for value in facts.values(node.value) if value.role is Role.INSTANCE)
                if any(isinstance(cls, Class) and cls.is_related(home.owner) for cls in owners):
                    yield node


def _names(facts: Facts, home: Function, mine: set[ast.AST]) -> Iterator[tuple[Unit, str, int]]:
    """The names of the raw loaders: where the object is made, below that; in its `__init__`."""
    own = home.itself.arg if home.itself is not None else None
    for name, values in home.parameters.items():
        if name != own and _loaders(facts, values) & mine:
            yield home, name, 0
    for call in facts.callers(home):
        for given in (each for each in arguments(call.node) if isinstance(each, ast.Name)):
            if _loaders(facts, facts.values(given)) & mine:
                yield call.caller, given.id, call.node.lineno


def _loaders(facts: Facts, values: Values) -> set[ast.AST]:
    """The loaders that values are, or that a list or a dictionary among them holds."""
    return origins(values, Role.LOADER) | facts.inside(values, Role.LOADER)


def _reads(facts: Facts, unit: Unit, name: str) -> Iterator[ast.Name]:
    """Where a unit's own name is read: in it, in functions inside of it, and, of a module's, in those that see it."""
    for other in facts.units:
        sees = other is unit or _sees(other, unit, name)
        for node in facts.own(other) if sees else ():
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
                yield node


def _sees(other: Unit, unit: Unit, name: str) -> bool:
    """Whether a name in a function is that of a unit around it."""
    above: Unit | None = other
    while isinstance(above, Function) and above is not unit:
        if name in above.names or name in above.parameter_names:
            return False
        above = above.parent or above.module
    return above is unit


@dataclass(frozen=True, slots=True)
class _Raw:
    """The loaders that a home is handed, where they are read under the names that they had."""

    facts: Facts
    home: Function
    mine: set[ast.AST]
    seen: set[tuple[Unit, str]] = field(default_factory=set)  # the parameters that have been looked at

    def is_run(self, node: ast.Name) -> bool:
        """Whether something goes over a loader where it, or what holds it, is read.

        In the `__init__`, whether that is kept for later.
        """
        facts, tree = self.facts, self.facts.tree(node)
        inner, above = self._item(node, tree)
        if not origins(facts.values(inner), Role.LOADER) & self.mine:
            return self._is_handed_on(inner, above) or isinstance(above, ast.Attribute)
        is_wrapped = False
        while isinstance(above, ast.Call) and facts.called(above) & _RUNNING and inner in above.args:
            inner, above, is_wrapped = above, tree.parents[above], True
        if facts.unit(node) is self.home:
            return is_wrapped and _is_kept(facts, node)
        is_over = isinstance(above, (ast.For, ast.AsyncFor, ast.comprehension)) and inner is above.iter
        is_out = is_over or is_wrapped or isinstance(above, (ast.Lambda, ast.Return))
        return is_out or self._is_handed_on(inner, above)

    def _item(self, node: ast.expr, tree: Tree) -> tuple[ast.expr, ast.AST]:
        """What is taken out of a container where that is read, and what stands around it."""
        above = tree.parents[node]
        while isinstance(above, ast.Subscript) and above.value is node:
            node, above = above, tree.parents[above]
        return node, above

    def _is_handed_on(self, given: ast.expr, above: ast.AST) -> bool:
        """Whether a function of the program that is given a loader goes over it, or keeps it."""
        call = self.facts.tree(given).parents[above] if isinstance(above, ast.keyword) else above
        if not isinstance(call, ast.Call) or not _loaders(self.facts, self.facts.values(given)) & self.mine:
            return False
        return any(self._is_run_in(call, given, unit) for unit in self.facts.targets(call) if unit is not self.home)

    def _is_run_in(self, call: ast.Call, given: ast.expr, unit: Function) -> bool:
        names = handed_as(call, unit, given)
        new = [name for name in names if (unit, name) not in self.seen]
        self.seen.update((unit, name) for name in new)
        reads = (node for name in new for node in _reads(self.facts, unit, name))
        return not names or any(_is_kept(self.facts, node) or self.is_run(node) for node in reads)


def _is_kept(facts: Facts, node: ast.Name) -> bool:
    statement = facts.tree(node).statement(node)
    return isinstance(statement, ast.Assign) and any(isinstance(target, ast.Attribute) for target in statement.targets)
