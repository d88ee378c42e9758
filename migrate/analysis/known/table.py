"""The shapes of the rows. Each says what one library name does when it is called.

A name with `*` stands for all that match: `*` is any part of one name, `[A-Z]` a capital letter at its beginning, and
modules (in lower case) may stand between the last whole module and the first name with a `*`. So `torch.optim.*` is
`torch.optim.SGD` and `torch.optim.adam.Adam`, but no method of either. A whole name goes before a pattern; of two
patterns the one that begins with more before its first `*`, then the longer one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from migrate.analysis.roles import Role

Argument: TypeAlias = "tuple[int, str]"  # position and keyword
FIRST: Argument = (0, "")
NOWHERE = 1_000_000  # the position of an argument that is passed by its keyword only


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a name. `old`: of an earlier version of its library, today's has it no more."""

    name: str
    old: bool = field(default=False, kw_only=True)

    @property
    def base(self) -> Role | None:
        """The role of the objects of a class that derives from it."""
        return None


@dataclass(frozen=True, slots=True)
class Makes(Row):
    """Calling it makes an object of this role; `over` is the argument that says what the object works on."""

    role: Role
    over: Argument | None = None

    @property
    def base(self) -> Role | None:
        return self.role


@dataclass(frozen=True, slots=True)
class Gives(Row):
    """Calling it gives a tuple: of new objects of these roles, of arguments that come back, of things unknown (None).

    `over` is what the new objects work on. `is_short`: arguments that were not passed are left out, and one that is
    left alone comes back without a tuple.
    """

    elements: tuple[Role | Argument | None, ...]
    over: Argument | None = None
    is_short: bool = False


@dataclass(frozen=True, slots=True)
class Passes(Row):
    """Calling it gives back its argument; with the role ITERATOR an iterator over it, with PARAMETERS a model's own.

    `keeps` are the only roles that come through, where not every argument does. `derived` is the role of the objects of
    a class that derives from it.
    """

    argument: Argument = FIRST
    role: Role | None = None
    keeps: frozenset[Role] | None = None
    derived: Role | None = None

    @property
    def base(self) -> Role | None:
        return self.derived


@dataclass(frozen=True, slots=True)
class Each:
    """An element of what is passed to the library: `pool.map(f, names)` calls f with each name."""

    argument: Argument


@dataclass(frozen=True, slots=True)
class Items:
    """A list of items of a data set: what a loader calls `collate_fn` with."""

    argument: Argument


Part: TypeAlias = "Role | Argument | Each | Items | None"  # of what a function is called with; None: something unknown


class What(Enum):
    """What a library gives back that calls a function."""

    RESULT = "what the function gives"
    EACH = "an iterator over what it gives"
    LATER = "an object that has what it gives, some time"


@dataclass(frozen=True, slots=True)
class Calls(Row):
    """Calling it, with a function as an argument, calls that function, now or later.

    The function is called with `passes`, then with what the arguments from position `over` on hold (one of each), with
    the arguments from position `after` on, or with what stands in the argument `rest`; and with the `keywords`. Without
    `gives`, the other row of the name says what comes back. `often`: any number of times.
    """

    function: Argument = FIRST
    passes: tuple[Part, ...] = ()
    over: int | None = None
    after: int | None = None
    rest: Argument | None = None
    keywords: Argument | None = None
    gives: What | None = None
    often: bool = False


@dataclass(frozen=True, slots=True)
class Enters(Row):
    """A function that is decorated with it, or with what calling it gives, is called by the library, with `passes`.

    `options` are decorators beside it, each of which names a parameter that the command line fills.
    """

    passes: tuple[Part, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reads(Row):
    """Calling it, or a subscript of it, gives the environment variable that the first argument names."""


@dataclass(frozen=True, slots=True)
class Computes(Row):
    """Calling it makes a tensor out of what goes in: rows are kept unless the function folds them."""


@dataclass(frozen=True, slots=True)
class Other(Row):
    """Calling it makes none of what wider rows say, and nothing that a rule asks for."""


def each(shape: type[Row], modules: Iterable[str], names: str, **fields: object) -> Iterator[Row]:
    """The same row for many names, under each of the modules."""
    for module in modules:
        for name in names.split():
            yield shape(f"{module}.{name}", **fields)  # type: ignore[arg-type]
