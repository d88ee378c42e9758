"""Copies of the user's folder to run in. Large files are links: they are read where they lie, and never written there.
So is what may not be read, which then fails in the copy as it does in the folder.

What a run writes replaces the link (`recorder/fence.py`), so the copy behaves like the folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from migrate.errors import UsageError
from migrate.source.top import is_top
from migrate.verify.digest import digest

LARGE_BYTES = 4 << 20  # a larger file is linked
MANY_FILES = 5000  # a folder with more, and no Python among them, is linked as a whole
MOST_ENTRIES = 200_000  # more than a project has: the folder is not one
MOST_BYTES = 1 << 30  # likewise; what is linked does not count
LEFT_OUT = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        "__pycache__",
        "node_modules",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".ruff_cache",
        ".pytest_cache",
    }
)

Snapshot = Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder of the user's, and the files that are to have another content in its copy."""

    folder: Path
    changed: Mapping[str, bytes]  # path below the folder -> content

    def make(self, target: Path, *, converted: bool) -> Snapshot:
        """A fresh copy; gives what its files look like, so that `written` knows what a run has changed.

        Raises:
            UsageError: the folder holds more than a project does.
        """
        if target.exists():
            shutil.rmtree(target)
        target.mkdir(parents=True)
        count = _Count(str(self.folder))
        _copy(self.folder, target, self.folder, count)
        if converted:
            for path, content in self.changed.items():
                (target / path).unlink(missing_ok=True)  # a link leads to the original
                (target / path).write_bytes(content)
        return snapshot(target)


def place_for(folder: Path, work: Path) -> Path:
    """Where the copy of a folder goes below `work`: as deep below it as the folder lies in its project.

    What lies beside and above the folder, up to the project's top, is there as links, so that `../data` is found.
    """
    above: list[Path] = []
    for each in (folder, *folder.parents):
        above.append(each)
        if is_top(each):
            break
    else:  # no project: what is above is somebody's home
        del above[1:]
    here = work / above[-1].name
    for outer, inner in zip(above[:0:-1], above[-2::-1], strict=True):
        _link_all(outer, here, inner.name)
        here /= inner.name
    return here


def _link_all(folder: Path, here: Path, but: str) -> None:
    if here.exists():
        return
    here.mkdir(parents=True)
    for entry in os.scandir(folder):
        if entry.name != but and entry.name not in LEFT_OUT:
            (here / entry.name).symlink_to(entry.path)


def snapshot(folder: Path) -> Snapshot:
    """Size and time of every file; links are not followed."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(os.path.join(path, name))
            found[os.path.relpath(os.path.join(path, name), folder)] = (status.st_size, status.st_mtime_ns)
    return found


def written(folder: Path, before: Snapshot) -> dict[str, str]:
    """The files that a run has made or changed, each with a digest of its content, or the source that it is a copy of.

    A program that keeps its own source beside its results keeps another one once it is converted.
    """
    now = snapshot(folder)
    changed = {path for path, state in now.items() if before.get(path) != state}
    found = {path: digest(folder / path) for path in sorted(changed) if not (folder / path).is_symlink()}
    sizes = {now[path][0] for path in found} - {0}
    sources = (path for path in sorted(before.keys() - changed) if path.endswith(".py") and before[path][0] in sizes)
    copied = {digest(folder / path): f"a copy of {path}" for path in sources if (folder / path).is_file()}
    return {path: copied.get(content, content) for path, content in found.items()}


class _Count:
    """How many entries were met, and how much of them was copied."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._entries = 0
        self._bytes = 0

    def entry(self) -> None:
        self._entries += 1
        self._check()

    def copied(self, size: int) -> None:
        self._bytes += size
        self._check()

    def _check(self) -> None:
        if self._entries > MOST_ENTRIES or self._bytes > MOST_BYTES:
            much = f"{MOST_ENTRIES:,} files, or {MOST_BYTES >> 20} MiB in small ones,"
            raise UsageError(
                f"{self._folder} holds more than {much} and cannot be copied to run in",
                "Go to the folder of the project and run migrate there.",
            )


def _copy(source: Path, target: Path, root: Path, count: _Count) -> None:
    for entry in sorted(os.scandir(source), key=lambda entry: entry.name):
        count.entry()
        here, there = Path(entry.path), target / entry.name
        if entry.is_symlink():
            there.symlink_to(_leads_to(here, root))
        elif entry.is_dir():
            _copy_folder(here, there, root, count)
        elif entry.is_file():
            if entry.stat().st_size > LARGE_BYTES or not os.access(here, os.R_OK):
                there.symlink_to(here)
            else:
                count.copied(entry.stat().st_size)
                shutil.copy2(here, there)


def _copy_folder(here: Path, there: Path, root: Path, count: _Count) -> None:
    if here.name in LEFT_OUT or (here / "pyvenv.cfg").exists():
        return
    if _is_data(here) or not os.access(here, os.R_OK | os.X_OK):
        there.symlink_to(here)
        return
    there.mkdir()
    _copy(here, there, root, count)


def _leads_to(link: Path, root: Path) -> str:
    """Where a link of the copy leads: into the copy if it stays in the folder, else to where it leads now."""
    text = os.readlink(link)
    target = Path(os.path.realpath(link))
    if not os.path.isabs(text) and target.is_relative_to(os.path.realpath(root)):
        return text
    return str(target)


def _is_data(folder: Path) -> bool:
    """Whether a folder holds very many files, none of them Python."""
    found = 0
    for _, _, names in os.walk(folder):
        if any(name.endswith(".py") for name in names):
            return False
        found += len(names)
        if found > MANY_FILES:
            return True
    return False
