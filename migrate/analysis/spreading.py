"""What `*values` and `**values` pass, as far as it is known where that goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.analysis.iteration import iterate
from migrate.analysis.roles import FROM_LOADER, NOTHING, Role, Values
from migrate.analysis.state import ELEMENT, MAPPING, MIXED, State
from migrate.analysis.unpacking import length_of

if TYPE_CHECKING:
    from migrate.analysis.arguments import Arguments


def spread(state: State, values: Values, arguments: Arguments) -> bool:
    """Add what `*values` passes: by position, as far as these are known, and the rest; whether there may be more."""
    positions: dict[int, Values] = {}
    rest: Values = NOTHING
    for value in values:
        if value.role is Role.CONTAINER and value.name != MAPPING and value.origin is not None:
            holding = state.held(value.origin)
            for key, held in holding.items():
                if key.isdigit() and MIXED not in holding:
                    positions[int(key)] = positions.get(int(key), NOTHING) | held
                elif key.isdigit() or key == ELEMENT:
                    rest |= held
        else:
            rest |= iterate(state, frozenset({value}))
    lengths = {length_of(state, value) for value in values}
    length = lengths.pop() if len(lengths) == 1 else None
    count = max(positions, default=-1) + 1 if length is None else length
    if arguments.rest or arguments.loose:  # behind another one of unknown length
        arguments.rest |= rest.union(*positions.values())
    else:
        arguments.positional += [positions.get(position, NOTHING) | rest for position in range(count)]
        arguments.rest |= rest
    return length is None


def spread_mapping(state: State, values: Values, named: dict[str, Values]) -> Values:
    """Add what `**values` passes under keys that are known, and give back the rest."""
    rest: Values = NOTHING
    for value in values:
        if value.role in (Role.CONTAINER, Role.HOLDER) and value.origin is not None:
            for key, held in state.held(value.origin).items():
                if key == ELEMENT:
                    rest |= held
                elif key[:1] != "<":
                    named[key] = named.get(key, NOTHING) | held
        elif value.role in FROM_LOADER:  # model(**batch)
            rest |= {value}
    return rest
