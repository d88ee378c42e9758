"""What a run found and did. Rules make findings, the pipeline adds changes and problems, renderers only read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from migrate.options import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from migrate.errors import MigrateError
    from migrate.report.map import Map
    from migrate.source.notebook import CellChange
    from migrate.source.project import SourceFile

OUR_BUG = "MIG999"  # the code of what only we can mend
NOT_EDITABLE = "MIG998"  # the code of a file that libcst cannot edit without changing more than it should


class Kind(Enum):
    """What a finding is about."""

    LOOP = "loop"  # a training loop that is still plain PyTorch
    LEFT = "left"  # something left to a person
    REVIEW = "review"  # a change that rests on what is only likely, and that a person should look at
    NOTE = "note"  # worth knowing, nothing to do
    FAULT = "fault"  # a mistake in code that uses an accelerator already


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say about one place."""

    code: str
    path: str  # as in SourceFile.path
    line: int  # 1-based
    column: int  # 1-based, in characters
    end_line: int
    message: str
    hint: str  # the way out; empty where there is nothing to do
    kind: Kind
    converts: bool | None = None  # LOOP only: whether this run converts it
    loop: str | None = None  # the training loop it belongs to: "train.py:31"
    cell: int | None = None  # of a notebook: the number of the cell, among all, in which the lines count

    @property
    def place(self) -> str:
        """Where it is, as people read it: `train.py:31:5`, `train.ipynb:cell 3:12:5`."""
        cell = f"cell {self.cell}:" if self.cell is not None else ""
        return f"{self.path}:{cell}{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Summary:
    """A training program that was understood: one paragraph about it, and the files that stand or fall together."""

    path: str  # where it starts
    text: str  # one paragraph; empty where nobody will read it
    files: tuple[str, ...]  # paths of SourceFile; an edit dropped in one is dropped in all
    parts: tuple[str, ...] = ()  # paths of other named files that it imports, and that are no program themselves
    map: Map | None = None  # where somebody asked for it


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the rules say, beside the plan that they fill."""

    findings: tuple[Finding, ...] = ()
    summaries: tuple[Summary, ...] = ()
    faults: tuple[Finding, ...] = ()  # those of the findings' kind FAULT, whatever is selected


@dataclass(frozen=True, slots=True)
class Edit:
    """Why lines of a change are as they are: a rule's edit, at the lines of the file as it was."""

    code: str
    line: int  # 1-based
    end_line: int
    text: str = ""  # what it puts there as a statement of its own: "import torch"; empty where it changes what is there
    cell: int | None = None  # of a notebook: its lines are those of this cell


@dataclass(frozen=True, slots=True)
class Change:
    """A file's content before and after: its bytes, whatever it is."""

    path: str
    old: bytes
    new: bytes
    lost_comments: tuple[str, ...] = ()  # went away with their statement: "12: # text", "cell 3:12: # text"
    cells: tuple[CellChange, ...] = ()  # of a notebook: the cells that change, in order
    edits: tuple[Edit, ...] = ()  # in order of lines


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a run found and did."""

    findings: tuple[Finding, ...] = ()
    summaries: tuple[Summary, ...] = ()
    changes: tuple[Change, ...] = ()
    touched: tuple[str, ...] = ()  # paths that have edits to make; `--check` knows them without making the changes
    problems: tuple[MigrateError, ...] = ()  # input that could not be handled
    causes: tuple[BaseException, ...] = ()  # what stands behind bugs of ours, for `--traceback`
    remarks: tuple[str, ...] = ()  # about paths: a link not followed, a folder without Python
    files: int = 0  # files that were looked at
    written: bool = False  # the changes are on the disk
    ignored: int = 0  # findings that a comment, the settings or a baseline keep silent
    sources: Mapping[str, SourceFile] = field(default_factory=dict)  # by path: the files as they were read

    def of(self, kind: Kind) -> tuple[Finding, ...]:
        """The findings of one kind, in order."""
        return tuple(finding for finding in self.findings if finding.kind is kind)

    def showing(self, wanted: Callable[[Finding], bool]) -> Report:
        """The same report with no findings but the wanted ones."""
        return replace(self, findings=tuple(filter(wanted, self.findings)))

    def only(self, code: str) -> Report:
        """The same report with no findings but those of one code."""
        return self.showing(lambda finding: finding.code == code)

    def remaining(self) -> Report:
        """The same report without the loops that this run converts."""
        return self.showing(lambda finding: not finding.converts)

    def unconverted(self, paths: Collection[str]) -> Report:
        """The same report with some files left as they are: their loops stay plain, and nothing of them is changed."""
        findings = (replace(f, converts=False) if f.kind is Kind.LOOP and f.path in paths else f for f in self.findings)
        return replace(
            self,
            findings=tuple(findings),
            changes=tuple(change for change in self.changes if change.path not in paths),
            touched=tuple(path for path in self.touched if path not in paths),
        )

    @property
    def has_trouble(self) -> bool:
        """Whether the input, or a bug of ours, kept something from being looked at, converted or written."""
        return bool(self.problems) or any(finding.code == OUR_BUG for finding in self.findings)

    def exit_status(self, mode: Mode) -> int:
        """0: nothing to do, or all done. 1: something remains. 2: trouble with the input, or a bug of ours."""
        if self.has_trouble:
            return 2
        if mode is Mode.WRITE:
            unconverted = any(not loop.converts for loop in self.of(Kind.LOOP))
            return int(unconverted or any(self.of(kind) for kind in (Kind.LEFT, Kind.REVIEW, Kind.FAULT)))
        return int(bool(self.touched) or bool(self.of(Kind.LOOP)) or bool(self.of(Kind.FAULT)))
