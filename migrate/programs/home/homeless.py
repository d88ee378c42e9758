"""Why a program has no home, and the smallest change that would give it one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.state import ELEMENT, MIXED
from migrate.analysis.units import Function, Unit
from migrate.programs.home.anew import is_argument
from migrate.programs.home.homes import Wanted, entered_again
from migrate.programs.home.naming import covers, reachable
from migrate.programs.reach.outsiders import units_from
from migrate.programs.reach.uncalled import called
from migrate.programs.values.new_lists import is_new_list

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts

_REPEATING = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_WORDS = {Role.MODEL: "the model", Role.OPTIMIZER: "the optimizer", Role.LOADER: "the loader"}


def why_homeless(facts: Facts, wanted: Wanted) -> tuple[str, str]:
    """What stands in the way of a home, and the way out."""
    if (again := entered_again(facts, wanted)) is not None:
        unit, named, site = again
        name, role = called(unit), named.role.value
        why = f"{name} is entered again with the same {role} (line {getattr(site, 'lineno', 0)})"
        return (
            f"{why}, which would be prepared twice",
            f"make what {name} makes once, beside the {role}, and hand it over",
        )
    if (kind := making_their_own(facts, wanted)) is not None:
        return (
            f"each {kind} makes an optimizer for itself, in one place for several of them",
            f"make the optimizer of each {kind} where that is made, under a name of its own",
        )
    closest = _nearest(facts, wanted)
    missing = _missing(facts, closest, wanted) if closest is not None else {}
    if closest is None or not missing:
        unnamed = {origin for origin in wanted.optimizers if is_argument(facts, facts.source(origin))}
        if unnamed and wanted.models:
            why = f"the optimizer ({_places(facts, unnamed)}) has no name where it is made: it is handed on at once"
            return why, "give it a name there, `optimizer = ...`, and hand that on: prepare needs it"
        loader = " and the loader" if wanted.loaders else ""
        these = f"the model{',' if loader else ' and'} the optimizer ({_places(facts, wanted.optimizers)}){loader}"
        return (
            f"no place names {these} together",
            f"make the model{',' if loader else ' and'} the optimizer{loader} in one function, or in one __init__",
        )
    if (listed := _in_lists(facts, missing)) is not None:
        return listed
    if set(missing) == {Role.MODEL} and all(_is_used_at_once(facts, made) for made in missing[Role.MODEL]):
        why = f"the model ({_places(facts, missing[Role.MODEL])}) has no name where it is made: its method is called"
        return f"{why} at once", "give it a name there, `model = ...`, and call the method of that: prepare needs it"
    have = " and ".join(word for role, word in _WORDS.items() if role not in missing)
    lack = " and ".join(f"{_WORDS[role]} ({_places(facts, made)})" for role, made in missing.items())
    it = "it" if len(missing) == 1 else "them"
    return (
        f"{called(closest)} has a name for {have}, and none for {lack}: prepare needs them together",
        f"give {it} a name in {called(closest)}: hand {it} over, or return {it} to there",
    )


def _is_used_at_once(facts: Facts, made: ast.AST) -> bool:
    """`Net().fit(loader)`."""
    source = facts.source(made)
    method = facts.tree(source).parents.get(source)
    return isinstance(method, ast.Attribute) and isinstance(facts.tree(source).parents.get(method), ast.Call)


def _in_lists(facts: Facts, missing: dict[Role, set[ast.AST]]) -> tuple[str, str] | None:
    """Why objects of which a list has any number have no names, and the way out; None: no list has them."""
    asked = (role for role in (Role.MODEL, Role.OPTIMIZER) if role in missing)
    kinds = [role for role in asked if all(_is_somewhere(facts, origin) for origin in missing[role])]
    if not kinds:
        return None
    what = " and ".join(f"the {role.value}s ({_places(facts, missing[role])})" for role in kinds)
    why = f"{what} are in lists of which nobody knows what stands where: prepare needs a name for each"
    way = "make each list by a comprehension over a range with a number that is written out"
    return why, f"{way}, [Net() for _ in range(3)], or give each object a name"


def _is_somewhere(facts: Facts, origin: ast.AST) -> bool:
    """Whether a list holds an object, and nobody knows at which position."""
    lists = [each for each in facts.singles.holders(origin) if is_new_list(facts, facts.source(each[0]))]
    return any(key == ELEMENT or facts.held(holder, MIXED) for holder, key in lists)


def _nearest(facts: Facts, wanted: Wanted) -> Unit | None:
    """The unit that lacks least to be a home, of those that lead to the training where there are such."""
    lacking: dict[Unit, int] = {}
    for unit in facts.units:
        if (count := len(_missing(facts, unit, wanted))) < len(_WORDS):
            lacking[unit] = count
    leading = [unit for unit in lacking if wanted.trains <= units_from(facts, unit)]
    nearest = leading or list(lacking)
    return min(nearest, key=lacking.__getitem__) if nearest else None


def making_their_own(facts: Facts, wanted: Wanted) -> str | None:
    """The class of several models that make their optimizers in their `__init__`."""
    for unit in {facts.unit(facts.source(origin)) for origin in wanted.optimizers}:
        if isinstance(unit, Function) and unit.owner is not None and unit.sets_up and unit.positional:
            mine = origins(unit.parameters.get(unit.positional[0].arg, frozenset()), Role.MODEL) & wanted.models
            if len(mine) > 1 or any(_is_repeated(facts, origin) for origin in mine):
                return unit.owner.node.name
    return None


def _is_repeated(facts: Facts, origin: ast.AST) -> bool:
    return any(isinstance(node, _REPEATING) for node in facts.tree(origin).up(facts.source(origin)))


def _missing(facts: Facts, unit: Unit, wanted: Wanted) -> dict[Role, set[ast.AST]]:
    """The roles of which an object has no name in a unit, with where such objects were made."""
    by_role = {Role.MODEL: wanted.models, Role.OPTIMIZER: wanted.optimizers, Role.LOADER: wanted.loaders}
    found: dict[Role, set[ast.AST]] = {}
    for role, mine in by_role.items():
        named = reachable(facts, unit, role, mine)
        if not mine and role is Role.LOADER:
            continue
        if not named or (role is not Role.MODEL and not covers(named, mine)):
            found[role] = mine - {origin for each in named for origin in each.origins}
    return found


def _places(facts: Facts, made: set[ast.AST]) -> str:
    places = sorted({f"{facts.file(origin).path}:{getattr(origin, 'lineno', 0)}" for origin in made})
    rest = f" and {len(places) - _MOST} more" if len(places) > _MOST else ""
    return ", ".join(places[:_MOST]) + rest


_MOST = 3  # places that a reason names
