"""What else holds the objects of a program: it would go on with those that are not prepared."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.entrances import entered_from
from migrate.analysis.roles import Role, origins
from migrate.analysis.units import Class
from migrate.programs.home.passing import is_passing
from migrate.programs.reach.entry_files import is_guarded_beside

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


def is_alone(facts: Facts, home: Unit, found: Iterable[ast.AST], holders: Iterable[ast.AST], key: str) -> bool:
    """Whether nothing else of the program that has its home there holds objects, under other keys or at all."""
    known = {(holder, key) for holder in holders}
    held = {other for origin in found for other, _ in facts.singles.holders(origin) - known}
    if not held:
        return True
    mains = {home.module, *entered_from(facts, home)}
    others = (other for other in held if not is_guarded_beside(facts, mains, other))
    return all(_is_taken_apart(facts, other) or is_passing(facts, home, other) for other in others)


def _is_taken_apart(facts: Facts, holder: ast.AST) -> bool:
    """Whether a tuple is only on its way: `return train_loader, test_loader`, to where each has a name of its own.

    So is that of `net, opt = nets[i], opts[i]`, and of `self.net, self.opt = net, opt`, which holds them from then on.
    """
    above = facts.tree(holder).parents[holder] if isinstance(holder, ast.Tuple) else None
    targets = above.targets if isinstance(above, ast.Assign) else []
    if targets and all(isinstance(each, ast.Tuple) and _are_names(each) for each in targets):
        return True
    return isinstance(above, ast.Return) and holder not in facts.once(_kept)


def _are_names(target: ast.Tuple) -> bool:
    return all(isinstance(each, (ast.Name, ast.Attribute)) for each in target.elts)


def _kept(facts: Facts) -> frozenset[ast.AST]:
    """Where the containers were made that have names, or that functions are given."""
    bound = (binding.values for binding in facts.bindings)
    given = (values for unit in facts.functions for values in unit.parameters.values())
    return frozenset(origin for values in (*bound, *given) for origin in origins(values, Role.CONTAINER))


def alike(facts: Facts, found: Iterable[ast.AST], key: str, holders: frozenset[ast.AST]) -> frozenset[ast.AST]:
    """Objects, and where each makes what it holds, others that do so, too: `exp = Exp(args)` in two branches."""
    known = facts.once(_WithTheirOwn)
    own = frozenset().union(*(known[origin, key] for origin in found))
    return holders | own if holders <= own else holders


class _WithTheirOwn(dict[tuple["ast.AST", str], frozenset["ast.AST"]]):
    """The objects whose `__init__` makes what they hold, by that and its key: each unit that knows one asks for it."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, asked: tuple[ast.AST, str]) -> frozenset[ast.AST]:
        origin, key = asked
        holders = (each for each, held in self._facts.singles.holders(origin) if held == key)
        self[asked] = frozenset(each for each in holders if self._makes(each, origin))
        return self[asked]

    def _makes(self, holder: ast.AST, origin: ast.AST) -> bool:
        classes = [value.unit for value in self._facts.values(holder) if value.origin is holder]
        inits = [init for cls in classes if isinstance(cls, Class) for init in cls.constructors()]
        return any(self._facts.singles.is_made_in(init, origin) for init in inits)
