"""What git knows of a work tree: which files it ignores, and which lines were touched since a revision."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.errors import UsageError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

_HUNK = re.compile(rb"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_NAME = re.compile(r"[0-9a-f]{40,}")  # of a commit
_PLAIN = ("-c", "core.quotePath=false")
# A diff as it is read here, whatever somebody's settings make of it.
_DIFF = (
    "diff",
    "--unified=0",
    "--inter-hunk-context=0",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--find-renames",  # what only got another name was not touched
)
# What a repository's own settings may tell git to run while it only looks.
_QUIET = ("-c", "core.fsmonitor=", "-c", f"core.hooksPath={os.devnull}")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "v": "\v", "f": "\f", '"': '"', "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Touched:
    """The lines of each file that are new, or stand where others were taken out, by absolute path without links."""

    top: Path  # of the work tree
    ranges: Mapping[Path, Sequence[tuple[int, int]]]  # first and last, 1-based, both included
    known: frozenset[Path]  # the files of the work tree that git keeps

    def any_of(self, real: Path | None, first: int, last: int) -> bool:
        """Whether one of these lines was touched; what is in no file, or in one that git does not keep, is new."""
        if real is None:
            return True
        if real not in self.known:
            return top_of(real.parent) == self.top
        return any(start <= last and first <= end for start, end in self.ranges.get(real, ()))


def top_of(folder: Path) -> Path | None:
    """The work tree that a folder lies in."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


def ignored(folder: Path) -> frozenset[Path]:
    """What git ignores below a folder of a work tree; of a folder that it ignores only the folder itself.

    Nothing, where git cannot be asked: then its lists are no reason to leave a file out.
    """
    listed = _git(folder, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory", "--", ".")
    if listed is None or listed.returncode:
        return frozenset()
    return frozenset(folder / os.fsdecode(name.rstrip(b"/")) for name in listed.stdout.split(b"\0") if name)


def touched(revision: str, folder: Path) -> Touched:
    """The lines of the work tree around a folder that are not as they were where it parted from a revision.

    Raises:
        UsageError: there is no work tree, no git, or no such revision.
    """
    top = top_of(folder)
    if top is None:
        raise UsageError(f"--since {revision} asks git, and {folder} is in no repository", "Leave --since out.")
    commit = _commit(top, revision)
    base = _asked(top, revision, "merge-base", commit, "HEAD")
    start = base.stdout.strip().decode() if base.returncode == 0 else commit  # unrelated histories have no base
    made = _asked(top, revision, *_PLAIN, *_DIFF, start, "--")
    if made.returncode:
        raise UsageError(f"git cannot compare with {revision!r}: {_said(made)}", "Name another revision.")
    kept = _asked(top, revision, "ls-files", "-z")
    known = frozenset(top / os.fsdecode(name) for name in kept.stdout.split(b"\0") if name)
    return Touched(top, _ranges(made.stdout, top), known)


def _commit(top: Path, revision: str) -> str:
    """The one commit that a revision names: of a range, git would compare the ends, not the files that are there."""
    named = _asked(top, revision, "rev-parse", "--verify", f"{revision}^{{commit}}")
    commit = named.stdout.strip().decode()
    if named.returncode or not _NAME.fullmatch(commit):
        if ".." in revision:
            raise UsageError(f"{revision!r} is a range of revisions", f"Name its start: --since {_start(revision)}.")
        raise UsageError(
            f"git does not know the revision {revision!r}{_told(named)}",
            "Fetch it first (a shallow clone has few), or name another: --since origin/main.",
        )
    return commit


def _start(revision: str) -> str:
    return revision.partition("..")[0] or "HEAD"


def _told(named: subprocess.CompletedProcess[bytes]) -> str:
    """Why, where git says more than that it does not know it: whose repository it is."""
    said = _said(named)
    return "" if "single revision" in said else f": {said}"


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    """What git says of a failure, in one line."""
    return os.fsdecode(done.stderr).strip().partition("\n")[0].removeprefix("fatal: ")


def _ranges(diff: bytes, top: Path) -> Mapping[Path, Sequence[tuple[int, int]]]:
    found: dict[Path, list[tuple[int, int]]] = {}
    current: list[tuple[int, int]] = []
    is_header = True
    for line in diff.split(b"\n"):
        if line.startswith(b"diff --git "):
            is_header = True
        elif is_header and line.startswith(b"+++ "):
            current = found.setdefault(top / _name(line[4:]), [])
        elif match := _HUNK.match(line):
            is_header = False
            first, count = int(match[1]), int(match[2] or 1)
            current.append((first, first + count - 1) if count else (first, first + 1))  # taken out between these
    return found


def _name(field: bytes) -> str:
    """The file of a `+++` line: a tab ends a name with blanks, and odd names are quoted."""
    text = os.fsdecode(field).rstrip("\r").removesuffix("\t")
    if text.startswith('"'):
        text = re.sub(
            r"\\(?:([0-7]{3})|(.))", lambda m: chr(int(m[1], 8)) if m[1] else _ESCAPES.get(m[2], m[2]), text[1:-1]
        )
    return text.removeprefix("b/")


def _asked(folder: Path, revision: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    done = _git(folder, *arguments)
    if done is None:
        raise UsageError(f"--since {revision} asks git, which cannot be run", "Install git, or leave --since out.")
    return done


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes] | None:
    import subprocess  # not where nobody asks git

    try:
        return subprocess.run(["git", *_QUIET, *arguments], cwd=folder, capture_output=True, check=False)  # noqa: S607
    except OSError:
        return None
