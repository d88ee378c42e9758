"""E4: only the first process speaks and writes, and it writes all that one process writes."""

from __future__ import annotations

import re
from collections.abc import Collection

from migrate.verify.model import Contract, Difference, Outcome, Verdict, counted
from migrate.verify.run import Run

#: What a run makes up for the name of a file: numbers, times, the digits of a uuid, or the first of them.
_MADE_UP = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![0-9A-Za-z])(?=[a-f]*\d)[0-9a-f]{6,}(?![0-9A-Za-z])|\d+"
)
HARMLESS = {"os.mkdir", "os.chmod", "os.utime"}  # a folder that is there already is not made again


def one_voice(alone: Run, frozen: Run, launched: Run, repeated: Collection[str]) -> Verdict:
    """E4, from the frozen run of one process and two runs of several.

    Args:
        repeated: the files that the original writes whenever it runs; others have a time or a number in their names.
    """
    count = launched.processes
    for run in (launched, frozen):
        if found := _line(run) or _file(run):
            return Verdict(Contract.E4, count, Outcome.FAIL, found)
    if missing := _missing(alone, frozen, repeated):
        return Verdict(Contract.E4, count, Outcome.FAIL, "a file is not written", missing)
    said = sum(1 for line in launched.main.lines if not line.is_bar)
    if not said and not launched.files:
        return Verdict(Contract.E4, count, Outcome.NOT_CHECKED, "the program says and writes nothing")
    message = f"process 0 said {counted(said, 'line')} and wrote {counted(len(launched.files), 'file')}, others none"
    return Verdict(Contract.E4, count, Outcome.PASS, message)


def _line(run: Run) -> str:
    for rank, record in enumerate(run.records[1:], start=1):
        for line in record.lines:
            if line.text.strip():
                what = "draws a bar" if line.is_bar else "says"
                return f"process {rank} {what}, too: {line.text.strip()[:100]!r} ({line.place})"
    return ""


def _file(run: Run) -> str:
    for rank, record in enumerate(run.records[1:], start=1):
        for written in record.written:
            if not written.library and written.how not in HARMLESS:
                return f"process {rank} writes, too: {written.path} ({written.place})"
    return ""


def _missing(alone: Run, several: Run, repeated: Collection[str]) -> Difference | None:
    if alone.end.how != several.end.how or alone.end.is_cut:
        return None
    alike = {_shape(path) for path in several.files}
    lost = sorted(alone.files.keys() - several.files.keys())
    lost = [path for path in lost if path in repeated or _shape(path) not in alike]
    return Difference(f"file {lost[0]}", "written", "not written") if lost else None


def _shape(path: str) -> str:
    """A path without what each run makes up for it."""
    return _MADE_UP.sub("#", path)
