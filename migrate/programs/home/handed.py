"""Loaders that an `__init__` is handed and prepares for its object: others go on with the raw ones by the old names.

    trainer = Trainer(model, loader)          # self.loader is prepared
    for x, y in loader: ...                   # each process would have all batches

To look at such a loader, `len(loader)`, is harmless; what runs over it, or keeps something that does, is not.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.construction import is_constructor
from migrate.analysis.known.progress import BARS
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import arguments
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.facts import Facts
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
    for where, name, line in _names(facts, unit, mine) if mine else ():
        for node in _reads(facts, where, name):
            is_later = facts.unit(node) is not where or node.lineno > line
            if is_later and origins(facts.values(node), Role.LOADER) & mine and _is_run(facts, unit, node):
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
    for name, values in home.parameters.items():
        if origins(values, Role.LOADER) & mine:
            yield home, name, 0
    for call in facts.callers(home):
        for given in (each for each in arguments(call.node) if isinstance(each, ast.Name)):
            if origins(facts.values(given), Role.LOADER) & mine:
                yield call.caller, given.id, call.node.lineno


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


def _is_run(facts: Facts, home: Function, node: ast.Name) -> bool:
    """Whether something goes over a loader where it is read; in the `__init__`, whether that is kept for later."""
    tree = facts.tree(node)
    inner: ast.AST = node
    above = tree.parents[inner]
    while isinstance(above, ast.Call) and facts.called(above) & _RUNNING and inner in above.args:
        inner, above = above, tree.parents[above]
    if facts.unit(node) is home:
        return inner is not node and _is_kept(facts, node)
    is_over = isinstance(above, (ast.For, ast.AsyncFor, ast.comprehension)) and inner is above.iter
    return is_over or inner is not node or isinstance(above, (ast.Lambda, ast.Return))


def _is_kept(facts: Facts, node: ast.Name) -> bool:
    statement = facts.tree(node).statement(node)
    return isinstance(statement, ast.Assign) and any(isinstance(target, ast.Attribute) for target in statement.targets)
