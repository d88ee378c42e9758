"""Everything that `migrate` raises on purpose.

MigrateError            what happened, where, and the way out; the command line prints it as one line
├── UsageError          the command asks for something that does not exist
├── SourceError         a file cannot be read, or is not Python 3
├── EditError           a planned edit cannot be made in this file; the file stays as it was
├── WriteError          the result cannot be saved; every file stays as it was
└── VerifyError         the original cannot be run to be compared with
"""

from __future__ import annotations


class MigrateError(Exception):
    """What happened (`what`), the way out, and the place where there is one (`path`; `line` is 0 when unknown).

    `cell` is the number of a notebook's cell, in which `line` counts.
    """

    def __init__(self, what: str, way_out: str = "", *, path: str = "", line: int = 0, cell: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.way_out = way_out
        self.path = path
        self.line = line
        self.cell = cell

    @property
    def line_of_file(self) -> int:
        """The line, for those who show files and know nothing of cells."""
        return 0 if self.cell else self.line

    @property
    def said(self) -> str:
        """What happened and the way out, for them."""
        cell = f"cell {self.cell}:{self.line}: " if self.cell else ""
        return f"{cell}{self.what}. {self.way_out}".strip()

    def __str__(self) -> str:
        path = f"{self.path}:cell {self.cell}" if self.cell else self.path
        place = f"{path}:{self.line}: " if self.line else f"{path}: " if path else ""
        way_out = f" {self.way_out}" if self.way_out else ""
        return f"{place}{self.what.rstrip('.')}.{way_out}"


class UsageError(MigrateError):
    """The command line asks for something that does not exist."""


class SourceError(MigrateError):
    """A file cannot be read, or is not Python that this interpreter reads."""


class EditError(MigrateError):
    """A planned edit cannot be made in this file."""

    is_our_bug = True  # False in those that say what the file or libcst does not allow
    code = "MIG998"  # under which it is told where it is none of our bugs


class WriteError(MigrateError):
    """The result cannot be saved; nothing was written."""


class VerifyError(MigrateError):
    """The original cannot be run as it must be to be compared with; nothing was written."""


def reason_of(error: BaseException) -> str:
    """Why something could not be read or written, as the system says it, to stand behind a colon."""
    return ((error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__).lower()
