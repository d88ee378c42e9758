"""What is found out about an object that is still being made: kept until something else is known of it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

_Made = TypeVar("_Made")


@dataclass(eq=False, slots=True)
class Kept:
    """A base of dataclasses whose fields are replaced and hold what does not change itself, but for those of `SAID`."""

    SAID: ClassVar[frozenset[str]] = frozenset()
    _made: dict[tuple[object, ...], object] = field(default_factory=dict, init=False, repr=False)
    _made_of: object = field(default=None, init=False, repr=False)

    def once(self, make: Callable[..., _Made], *given: object) -> _Made:
        """What a class or function makes of what is given and this object, as that is now."""
        if self._made_of != (state := _state_of(self)):
            self._made, self._made_of = {}, state
        key = (make, *given)
        if key not in self._made:
            self._made[key] = make(*given, self)
        return cast("_Made", self._made[key])


_STATES: dict[type[Kept], Callable[[Kept], object]] = {}


def _state_of(kept: Kept) -> object:
    kind = type(kept)
    if kind not in _STATES:
        own = {each.name for each in fields(Kept)} | kind.SAID
        _STATES[kind] = attrgetter(*(each.name for each in fields(kind) if each.name not in own))
    return _STATES[kind](kept)
