"""What a plan is made of: an `Edit` says which rule does what where, as data that is carried out later.

Each operation is a small frozen class. `slot` says what two edits of one place cannot both have: the first that was
planned keeps it, the other becomes a `Conflict`, unless both say the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate.source.address import Address


class Special(Enum):
    """What fills a hole of a template, when it is not text and not one expression."""

    ITSELF = "the node itself, as rewritten inside"
    ARGUMENTS = "the arguments of the call, with their commas"
    BODY = "the statements of the body"
    ORELSE = "the statements of the else part"


# What fills the holes of a template, by name: text, the expression at an address as it is after its own edits, or a
# `Special`.
Parts = tuple[tuple[str, "str | Address | Special"], ...]


class Branch(Enum):
    """Which part of an `if` statement is kept."""

    BODY = "body"
    ORELSE = "orelse"


class Operation:
    """What is done at a place."""

    __slots__ = ()

    @property
    def slot(self) -> Hashable | None:
        """What only one edit of a place can have; None where any number of edits get on."""
        return None


@dataclass(frozen=True, slots=True)
class Rewrite(Operation):
    """An expression gives way to a template."""

    template: str
    parts: Parts

    @property
    def slot(self) -> Hashable:
        return "expression"


class Lift(Rewrite):
    """An expression gives way to a name, which an inserted statement gives it: that takes it as it is before."""

    __slots__ = ()


class Whole(Operation):
    """What becomes of a statement as such, whatever is done to the expressions in it."""

    __slots__ = ()

    @property
    def slot(self) -> Hashable:
        return "statement"


@dataclass(frozen=True, slots=True)
class Replace(Whole):
    """A statement gives way to others."""

    code: str
    parts: Parts


@dataclass(frozen=True, slots=True)
class Remove(Whole):
    """A statement goes away."""


@dataclass(frozen=True, slots=True)
class Fold(Whole):
    """An `if` statement gives way to the statements of one branch."""

    keep: Branch


@dataclass(frozen=True, slots=True)
class Unwrap(Whole):
    """A `with` or `if` statement gives way to its body."""


@dataclass(frozen=True, slots=True)
class Insert(Operation):
    """Statements come before or after a statement."""

    code: str
    before: bool
    spaced: bool  # with a blank line on each side
    late: bool = False  # below what else is put at the same place
    parts: Parts = ()
    is_headed: bool = False  # by comments above the statement that stand behind a blank line


@dataclass(frozen=True, slots=True)
class Wrap(Operation):
    """The statement and its siblings up to number `last` go into a block."""

    last: int
    header: str  # without the colon
    merges: bool  # neighbours with the same header become one block


@dataclass(frozen=True, slots=True)
class AddParameter(Operation):
    """A function gets one more parameter."""

    name: str
    after: str | None  # None: after the last one that can be given by position; the empty string: before all

    @property
    def slot(self) -> Hashable:
        return ("parameter", self.name)


@dataclass(frozen=True, slots=True)
class RenameParameter(Operation):
    """A parameter gets another name, and loses its annotation."""

    name: str

    @property
    def slot(self) -> Hashable:
        return "parameter"


@dataclass(frozen=True, slots=True)
class RemoveParameter(Operation):
    """A function loses a parameter."""

    name: str

    @property
    def slot(self) -> Hashable:
        return ("parameter", self.name)


@dataclass(frozen=True, slots=True)
class AddArgument(Operation):
    """A call gets one more argument, before the `position`-th positional one or by keyword."""

    code: str
    position: int | None  # None: after the last positional one
    keyword: str | None

    @property
    def slot(self) -> Hashable | None:
        return ("keyword", self.keyword) if self.keyword else None


@dataclass(frozen=True, slots=True)
class ReplaceArgument(Operation):
    """The `index`-th argument as written gets another keyword, or another value where it is starred."""

    index: int
    code: str | None  # None: the value stays
    keyword: str | None  # None: the keyword stays

    @property
    def slot(self) -> Hashable:
        return ("argument", self.index)


@dataclass(frozen=True, slots=True)
class RemoveArgument(Operation):
    """The `index`-th argument as written goes away."""

    index: int

    @property
    def slot(self) -> Hashable:
        return ("argument", self.index)


@dataclass(frozen=True, slots=True)
class DropAlias(Operation):
    """The `index`-th name of an import statement goes away."""

    index: int


@dataclass(frozen=True, slots=True)
class AddAlias(Operation):
    """A `from` import gets one more name."""

    name: str


@dataclass(frozen=True, slots=True)
class AddImport(Operation):
    """The file gets an import, where it belongs. Its edit's address means nothing."""

    module: str
    name: str | None  # None: `import module`
    used: int | None = None  # the line of a statement that runs while the file is loaded and needs it

    @property
    def code(self) -> str:
        """The statement, where it stands alone."""
        return f"import {self.module}" if self.name is None else f"from {self.module} import {self.name}"


@dataclass(frozen=True, slots=True)
class Edit:
    """One change by one rule, at one place."""

    rule: str
    path: str
    address: Address
    operation: Operation
    line: int  # 1-based, in the file as it was
    end_line: int
    group: str = ""  # edits that only make sense together


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two edits that cannot both be made: the one planned first is."""

    kept: Edit
    lost: Edit


@dataclass(frozen=True, slots=True)
class Refusal:
    """An edit that was asked for and cannot be made, and why."""

    rule: str
    path: str
    line: int
    why: str
    group: str = ""
