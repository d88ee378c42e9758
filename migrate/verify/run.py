"""A run that is over: what each process wrote down, and what is on the disk."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from migrate.verify.records import End, Record

ENDS = {
    "ended": "ended by itself",
    "steps": "was ended after the steps asked for",
    "time": "was ended when its time was over",
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the original or the converted program."""

    name: str
    records: tuple[Record, ...]  # one for each process
    files: Mapping[str, str]  # what it has written below the copy -> digest
    output: str  # the end of what its processes printed
    seconds: float
    is_frozen: bool = False
    splits: bool = False

    @property
    def main(self) -> Record:
        """The first process."""
        return self.records[0]

    @property
    def processes(self) -> int:
        """How many there were."""
        return len(self.records)

    @property
    def end(self) -> End:
        """That of the process that failed, else that of the first one."""
        order = ("exception", "killed", "time")
        for how in order:
            for record in self.records:
                if record.end.how == how:
                    return record.end
        return self.main.end

    @property
    def cut(self) -> str:
        """In words, that its time was over before its end; empty if it was not."""
        return f"the run {self.name!r} was cut after {self.seconds:.0f} s" if self.end.is_cut else ""

    @property
    def has_failed(self) -> bool:
        """Whether it did not come to an end of its own or of ours."""
        return self.end.how in {"exception", "killed"} or (self.end.how == "exit" and self.end.status != 0)

    def fails_as(self, other: Run) -> bool:
        """Whether two failures are one: a conversion moves lines, and several processes count otherwise."""
        return self._failure == other._failure

    @property
    def _failure(self) -> tuple[str, int, str]:
        end = self.end
        told = end.message if end.how == "exception" else f"{end.message} {self._last_words}"
        return end.how, end.status, re.sub(r"\d+", "", told)

    @property
    def why(self) -> str:
        """How it ended, in words."""
        end = self.end
        at = f" at {end.place}" if end.place else ""
        if end.how == "exception":
            return f"failed with {end.message.splitlines()[-1] if end.message else 'an exception'}{at}"
        if end.how == "exit":
            left = f"left with sys.exit({end.message or end.status})"
            return left if end.message or not end.status else f"{left}; {self._last_words}"
        if end.how == "killed":
            return f"was killed; {self._last_words}"
        return ENDS[end.how] + (at if end.is_cut else "")

    @property
    def _last_words(self) -> str:
        said = [line.strip() for line in self.output.splitlines() if line.strip()]
        return f"its last words: {said[-1][:200]}" if said else "it said nothing"

    def digests(self) -> dict[str, str]:
        """The files; checkpoints, and copies of them, by what is in them: two of one content may differ in bytes."""
        saved = {path: contents[-1] for path, contents in self.main.saves().items()}
        copied = {each.digest: each.content for each in self.main.saved}
        contents = {path: saved.get(path, copied.get(digest)) for path, digest in self.files.items()}
        return {path: self.files[path] if each is None else _shown(each) for path, each in contents.items()}


def _shown(content: Any) -> str:
    return sha256(json.dumps(content).encode()).hexdigest()


def with_cuts(message: str, *runs: Run) -> str:
    """What was compared of some runs, or why nothing was; and which of them was cut, if one was."""
    return "; ".join([message, *(run.cut for run in runs if run.cut)])
