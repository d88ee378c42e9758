"""How many values are told apart in one place: that keeps the solver bounded, and claims nothing false."""

from __future__ import annotations

from migrate.analysis.roles import NOTHING, Role, Value, Values
from migrate.analysis.units import Class, Function

#: What may be one of more values than this may be ANYTHING.
WIDEST = 48
ANYTHING = Value(Role.UNKNOWN, name="anything")

#: Of these nothing is known, if they are none of the project's own.
_UNKNOWN = frozenset({Role.UNKNOWN, Role.METHOD})


def widened(old: Values, values: Values) -> Values:
    """The union, bounded."""
    if not old:
        return bounded(values)  # the same object, which is told from others at once
    return old if ANYTHING in old else bounded(old | values)


def bounded(values: Values) -> Values:
    """The values, or the first of them and ANYTHING: a hundred functions teach no more than fifty."""
    if len(values) <= WIDEST or (len(values) == WIDEST + 1 and ANYTHING in values):
        return values
    return frozenset({*in_order(values - {ANYTHING})[:WIDEST], ANYTHING})


def join(names: dict[str, Values], name: str, values: Values) -> bool:
    """Add values to a name; whether that was news."""
    old = names.get(name)
    if old is not None and values <= old:
        return False
    union = united(old or NOTHING, values)
    names[name] = union
    return union != old


def united(old: Values, values: Values) -> Values:
    """The union, bounded in what nothing is known of.

    Names, parameters and results keep all others: by them loaders come to loops, and objects to what sets them up.
    """
    union = old | values
    if len(union) <= WIDEST:
        return union
    fresh = _unknown(values) - old - {ANYTHING}
    if ANYTHING in old:
        return union - fresh
    room = max(0, WIDEST - len(_unknown(old)))
    return union if len(fresh) <= room else union.difference(in_order(fresh)[room:]) | {ANYTHING}


def _unknown(values: Values) -> Values:
    """Those of which nothing is known."""
    return frozenset(value for value in values if value.role in _UNKNOWN and value.unit is None)


def in_order(values: Values) -> list[Value]:
    """The values in an order that is the same in each run, which that of a set is not."""
    return sorted(values, key=_place) if len(values) > 1 else list(values)


def _place(value: Value) -> tuple[tuple[str, int, int, str], ...]:
    """What values are ordered by: where and what they are, then the same of what they are bound to."""
    found = []
    bound: Value | None = value
    while bound is not None:
        path = bound.unit.module.path if isinstance(bound.unit, (Class, Function)) else ""
        place = getattr(bound.origin, "lineno", 0), getattr(bound.origin, "col_offset", 0)
        found.append((path, *place, f"{bound.role.value} {bound.name}"))
        bound = bound.receiver
    return tuple(found)
