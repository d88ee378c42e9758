"""The names under which the objects of a program can be reached in a unit: what prepare can be written with.

Names and attributes that the unit binds come first. Where these do not do, there are its parameters, and what the
objects that it knows hold: `data.train_loader`, `self.model` in a method that did not set it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, Values, origins
from migrate.analysis.units import Class, Function, Unit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding


_NO_KEYS: dict[ast.AST, str] = {}


@dataclass(frozen=True, slots=True)
class Named:
    """An object of the program under the name it has at home."""

    target: str  # "model", "self.model", "data.train_loader"
    role: Role
    origins: frozenset[ast.AST]
    statements: tuple[ast.stmt, ...]  # those that bind it, in order; none: it was made before the unit is entered

    @property
    def is_given(self) -> bool:
        """Whether it was made before the home is entered."""
        return not self.statements

    def place(self, facts: Facts) -> ast.AST:
        """Where it gets its name, or where it was made."""
        return self.statements[-1] if self.statements else facts.source(min(self.origins, key=_line))


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def bound(facts: Facts, unit: Unit, role: Role, wanted: set[ast.AST] | None) -> tuple[Named, ...]:
    """The names that a unit binds to objects of a role; of two names for one object the first."""
    by_target: dict[str, list[tuple[Binding, set[ast.AST]]]] = {}
    for binding in facts.bindings_in(unit):
        if isinstance(binding.statement, (ast.For, ast.AsyncFor)) or _only_sets_mode(binding):
            continue
        found = origins(binding.values, role)
        mine = found if wanted is None else found & wanted
        if mine and _is_reachable(binding.target, unit):
            by_target.setdefault(binding.target, []).append((binding, mine))
    named: list[Named] = []
    seen: set[ast.AST] = set()
    for target, bindings in by_target.items():
        mine = set().union(*(found for _, found in bindings))
        if not mine <= seen:
            seen |= mine
            named.append(Named(target, role, frozenset(mine), tuple(b.statement for b, _ in bindings)))
    return tuple(named)


def reachable(
    facts: Facts, unit: Unit, role: Role, wanted: set[ast.AST] | None, keys: Mapping[ast.AST, str] = _NO_KEYS
) -> tuple[Named, ...]:
    """The names of `bound`, and for other objects those through parameters and through what the unit's objects hold.

    `keys` says of loaders that one expression makes for a dictionary which of them is meant.
    """
    named = list(bound(facts, unit, role, wanted))
    seen = {origin for each in named for origin in each.origins}
    for other in (*_parameters(unit, role), *_attributes(facts, unit, role), *_items(facts, unit, role, keys)):
        mine = other.origins if wanted is None else other.origins & wanted
        if mine and not mine & seen:
            seen |= mine
            named.append(Named(other.target, role, frozenset(mine), other.statements))
    return tuple(named)


def covers(named: tuple[Named, ...], wanted: set[ast.AST]) -> bool:
    """Whether all of the objects have a name."""
    return wanted <= {origin for name in named for origin in name.origins}


def _only_sets_mode(binding: Binding) -> bool:
    """`model = model.eval()`: the object stays what it was."""
    made = getattr(binding.statement, "value", None)
    return (
        isinstance(made, ast.Call)
        and isinstance(made.func, ast.Attribute)
        and made.func.attr in ("train", "eval")
        and ast.unparse(made.func.value) == binding.target
    )


def _is_reachable(target: str, unit: Unit) -> bool:
    """A plain name, or an attribute of the object that an `__init__` sets up."""
    if target.isidentifier():
        return True
    owner, _, attribute = target.partition(".")
    return isinstance(unit, Function) and isinstance(unit.owner, Class) and owner == "self" and attribute.isidentifier()


def _parameters(unit: Unit, role: Role) -> Iterator[Named]:
    """What a function is handed."""
    if not isinstance(unit, Function) or isinstance(unit.node, ast.Lambda):
        return
    for parameter in (*unit.positional, *unit.node.args.kwonlyargs):
        if found := origins(unit.parameters.get(parameter.arg, frozenset()), role):
            yield Named(parameter.arg, role, frozenset(found), ())


def _attributes(facts: Facts, unit: Unit, role: Role) -> Iterator[Named]:
    """What is held by objects that have a name in the unit, and is held by nothing else."""
    for owner, values, statements in _owners(facts, unit):
        holding = [
            facts.holding(value.origin) if value.role is Role.INSTANCE and value.origin is not None else {}
            for value in values
        ]
        keys = [key for key in holding[0] if key.isidentifier()] if holding else []
        for key in keys:
            several = [origins(held.get(key, frozenset()), role) for held in holding]
            found = set().union(*several)
            if all(several) and all(facts.singles.holders(origin) == 1 for origin in found):
                yield Named(f"{owner}.{key}", role, frozenset(found), statements)


def _items(facts: Facts, unit: Unit, role: Role, keys: Mapping[ast.AST, str]) -> Iterator[Named]:
    """What a dictionary holds: `loaders["train"]`."""
    for owner, values, statements in _owners(facts, unit) if keys else ():
        found = facts.inside(values, role, 1) & keys.keys()
        if len(values) == len(found) == 1:
            (origin,) = found
            content = facts.file(facts.source(origin)).content
            quote = '"' if content.count(b'"') > content.count(b"'") else "'"
            yield Named(f"{owner}[{quote}{keys[origin]}{quote}]", role, frozenset(found), statements)


def _owners(facts: Facts, unit: Unit) -> Iterator[tuple[str, Values, tuple[ast.stmt, ...]]]:
    """The names of objects: those that the unit binds, and in a method its own object and what that holds."""
    by_target: dict[str, list[Binding]] = {}
    for binding in facts.bindings_in(unit):
        if _is_reachable(binding.target, unit) and not isinstance(binding.statement, (ast.For, ast.AsyncFor)):
            by_target.setdefault(binding.target, []).append(binding)
    for target, bindings in by_target.items():
        values: Values = frozenset().union(*(binding.values for binding in bindings))
        yield target, values, tuple(binding.statement for binding in bindings)
    if isinstance(unit, Function) and unit.owner is not None and unit.positional and unit.name != "__init__":
        yield "self", unit.parameters.get(unit.positional[0].arg, frozenset()), ()
