"""What a run is asked to do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.known import Tables
    from migrate.source.patterns import Patterns


class Mode(Enum):
    """What happens with the result."""

    PREVIEW = "preview"  # diff and report
    DIFF = "diff"  # diff only
    CHECK = "check"  # findings only; nothing is edited, not even in memory
    WRITE = "write"  # files are replaced


class Target(str, Enum):
    """The package that converted scripts import `Accelerator` from, by its name."""

    RUNTIME = "runtime"
    ACCELERATE = "accelerate"


class Hardware(str, Enum):
    """What converted scripts will run on, where that is worth notes of its own."""

    TPU = "tpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One run's settings; the same for every file."""

    mode: Mode = Mode.PREVIEW
    target: Target = Target.RUNTIME
    hardware: Hardware | None = None  # None: any
    select: tuple[str, ...] = ()  # codes or their beginnings ("MIG1"); empty: every rule
    ignore: tuple[str, ...] = ()  # likewise; the longer beginning wins, `ignore` where they are equally long
    review: bool = False  # also make edits that rest on what is only likely
    annotate: bool = False  # and put a comment at these
    report: bool = False  # a page for reviewers is wanted: what changes and what was understood, in every mode
    notebook_launcher: bool = False  # of notebooks: start what trains on several processes
    known: Tables | None = None  # what is known of libraries, with the rows of the project's pyproject.toml; None: ours
    known_text: str = ""  # what the project's rows are made of
    exclude: tuple[Patterns, ...] = ()  # files and folders that are not looked at where they are found in a folder
    force_exclude: bool = False  # nor where they are named themselves
    gitignore: bool = True  # nor what git ignores
    per_file_ignores: tuple[tuple[Patterns, tuple[str, ...]], ...] = ()  # codes that are not told of some files
    baseline: str | None = None  # the file of findings that are known already
    config: str | None = None  # the pyproject.toml to read; None: the nearest one; empty: none
    jobs: int = 1  # processes; 0: as many as pay
    cache: bool = False  # use results of earlier runs, and keep those of this one
    cache_dir: str = ""  # where; empty: in the top folder of the project
    given: frozenset[str] = frozenset()  # fields that the command line sets, so that pyproject.toml does not
    is_settled: bool = False  # pyproject.toml has been read

    def wants(self, code: str) -> bool:
        """Whether the rule with this code takes part."""
        return _longest(self.select or ("",), code) > _longest(self.ignore, code)


def _longest(starts: Iterable[str], code: str) -> int:
    return max((len(start) for start in starts if code.startswith(start)), default=-1)


@dataclass(frozen=True, slots=True)
class Question:
    """What `--explain-role` asks: a name on a line of a file."""

    path: str
    line: int
    name: str
    cell: int = 0  # of a notebook: the cell in which the line counts


def question(text: str) -> Question:
    """The question in `FILE:LINE:NAME`, or, of a notebook, `FILE:cell 3:LINE:NAME`.

    Raises:
        UsageError: it is not of this form.
    """
    if match := re.fullmatch(r"(?s)(.+?):(\d+):(.+)", text):
        path, line, name = match[1], int(match[2]), match[3].strip()
        if cell := re.fullmatch(r"(?s)(.+\.ipynb):(?:cell )?(\d+)", path):
            return Question(cell[1], line, name, int(cell[2]))
        return Question(path, line, name)
    example = "'train.ipynb:cell 3:12:model'" if ".ipynb" in text else "train.py:31:model"
    raise UsageError(f"{text!r} is not FILE:LINE:NAME", f"For example: migrate --explain-role {example}")
