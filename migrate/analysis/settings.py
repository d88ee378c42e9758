"""What a user says, in the command line or in a file: nobody else knows what stands there under a name."""

from __future__ import annotations

import ast

from migrate.analysis.known.settings import READERS
from migrate.analysis.roles import NOTHING, Role, Value, Values


def name_of(key: ast.expr | None) -> str | None:
    """The name that a key is: "device" of `config["device"]`, as in `config.device`."""
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def said(value: Value, name: str | None) -> Values:
    """What a user says under a name, of settings and of a part of them: `config["train"]["device"]`."""
    holder = _holder(value)
    if holder is None or name is None:
        return NOTHING
    return frozenset({Value(Role.METHOD, holder.origin, name, None, holder)})


def under(value: Value, name: str | None, held: Values) -> Values:
    """What stands under a name: what the program puts there (`held`), or what the user says.

    A program that puts nothing but the CPU there does so for those who have nothing else, or ask for it.
    """
    return held if held - _CPU else held | said(value, name)


_CPU = frozenset({Value(Role.TEXT, name="cpu")})


def _holder(value: Value) -> Value | None:
    if value.role is Role.HOLDER:
        return value
    if value.role is Role.UNKNOWN and value.name in READERS:
        return Value(Role.HOLDER, value.origin)
    above = value.receiver if value.role is Role.METHOD and value.unit is None else None
    return above if above is not None and above.role is Role.HOLDER else None
