"""The shapes of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate.analysis.roles import Role


@dataclass(frozen=True, slots=True)
class Makes:
    """Calling `name` (or, with a trailing `*`, a name that begins so) makes an object of this role.

    `over` is the argument that says what it works on: (position, keyword).
    """

    name: str
    role: Role
    over: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True)
class Passes:
    """Calling `name` gives back its argument; `role` when it comes back as something else."""

    name: str
    argument: int = 0
    role: Role | None = None
    wrapper: bool = False  # the result is a wrapper around the model (DataParallel)
