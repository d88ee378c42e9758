"""Files in: which ones, and their bytes. (`source/save.py` is the way out.)

Python files and notebooks. A notebook that is met in a folder, and in which no word of a training program stands, costs
no more than reading its bytes.

Folders are walked in sorted order, without installations, build results and hidden folders, without what git ignores or
the settings exclude, and without following links to folders. A path that is named is taken at its word: any name, any
link, unless exclusion is forced.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.errors import SourceError, reason_of
from migrate.source import git
from migrate.source.comments import skips
from migrate.source.disk import FOREIGN
from migrate.source.project import NOTEBOOK, RELEVANT, SourceFile, source_file
from migrate.source.reading import TooLargeError, content_of
from migrate.source.top import top_above

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from migrate.source.patterns import Patterns

# Folders that hold nobody's own sources; hidden ones are left out as well.
PRUNED = FOREIGN | {"__pycache__", "build", "dist"}


@dataclass(slots=True)
class Found:
    """The files of a run, what could not be read, and what to say about paths."""

    files: list[SourceFile] = field(default_factory=list)
    errors: list[SourceError] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which files are looked at."""

    exclude: tuple[Patterns, ...] = ()
    force: bool = False  # leave out what is named, too
    gitignore: bool = True  # leave out what git ignores

    def excludes(self, real: Path) -> bool:
        """Whether a path, absolute and without links, matches a pattern."""
        return any(patterns.match(real) for patterns in self.exclude)

    def forbids(self, place: Path) -> bool:
        """Whether a path is left out though it is named."""
        return self.force and (self.excludes(place.resolve()) or any(map(_is_pruned, _folders_to(place))))

    def ignored(self, real: Path) -> frozenset[Path]:
        """What git ignores below a folder."""
        return git.ignored(real) if self.gitignore and git.top_of(real) else frozenset()


@dataclass(frozen=True, slots=True)
class _Entry:
    path: Path
    real: Path  # absolute, without links
    walked: bool


def load(
    paths: Sequence[str], progress: Callable[[int], None] = lambda _: None, selection: Selection | None = None
) -> Found:
    """The Python files and notebooks that `paths` name or contain, each once, with their bytes.

    `progress` is told how many were read so far. What cannot be read becomes an error and stops nothing.
    """
    found = Found()
    seen: set[str] = set()
    for path in paths:
        for entry in _entries(path, found, selection or Selection()):
            if str(entry.real) in seen:
                continue
            seen.add(str(entry.real))
            if file := _read(entry, found):
                found.files.append(file)
                progress(len(found.files))
    return found


def _entries(path: str, found: Found, selection: Selection) -> Iterator[_Entry]:
    """The files that one argument stands for."""
    place = Path(path)
    try:
        mode = place.stat().st_mode
    except (OSError, ValueError) as error:  # ValueError: a NUL character in a name
        found.errors.append(_unreadable(place, error))
        return
    if selection.forbids(place):
        return
    if not stat.S_ISDIR(mode):
        yield _Entry(place, place.resolve(), walked=False)
        return
    count = 0
    top = place.resolve()
    for entry in _Walk(top, selection, found, set(selection.ignored(top))).entries(place, top):
        count += 1
        yield entry
    if not count:
        found.remarks.append(f"{path}: no Python files in this folder")


@dataclass(frozen=True, slots=True)
class _Walk:
    """One walk through a folder; `top` is where it begins, without links."""

    top: Path
    selection: Selection
    found: Found
    ignored: set[Path]  # by git; grows where another work tree begins

    def entries(self, folder: Path, real: Path) -> Iterator[_Entry]:
        """The `*.py` and `*.ipynb` files below a folder, in sorted order: those of a folder before its subfolders."""
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self.found.errors.append(_unreadable(folder, error))
            return
        if real != self.top and any(entry.name == ".git" for entry in entries):
            self.ignored.update(self.selection.ignored(real))
        subfolders = []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if not _is_pruned(entry.name) and not self._leaves_out(real / entry.name):
                    subfolders.append(entry.name)
            elif entry.name.endswith((".py", NOTEBOOK)) and not self._leaves_out(inside := real / entry.name):
                path = folder / entry.name
                if (target := self._target(entry, path, inside)) is not None:
                    yield _Entry(path, target, walked=True)
        for name in subfolders:
            yield from self.entries(folder / name, real / name)

    def _leaves_out(self, real: Path) -> bool:
        return bool(self.ignored and real in self.ignored) or self.selection.excludes(real)

    def _target(self, entry: os.DirEntry[str], path: Path, inside: Path) -> Path | None:
        """The file of this tree that a directory entry is, or leads to; says so where a link leads elsewhere."""
        if not entry.is_symlink():
            return inside if entry.is_file(follow_symlinks=False) else None
        try:
            real = path.resolve(strict=True)
        except (OSError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
            self.found.remarks.append(f"{path}: skipped, a link that leads nowhere")
            return None
        if not real.is_file():
            return None
        if not real.is_relative_to(self.top):
            text = f"{path}: skipped, a link out of the folder to {real}. Name it to have it converted"
            self.found.remarks.append(text)
            return None
        return real


def _folders_to(place: Path) -> Sequence[str]:
    """The folders that lead to a path from the current one, or from its project: those above are nobody's choice."""
    folder = Path(os.path.abspath(place)).parent
    here = Path.cwd()
    top = here if folder.is_relative_to(here) and here != Path(here.anchor) else top_above(folder)
    return folder.relative_to(top).parts


def _is_pruned(name: str) -> bool:
    return name in PRUNED or (name.startswith(".") and name not in (".", ".."))


def _read(entry: _Entry, found: Found) -> SourceFile | None:
    path, real = str(entry.path), entry.real
    if not entry.walked and not real.is_file():
        found.errors.append(SourceError("this is not a regular file", "Name a Python file or a folder.", path=path))
        return None
    try:
        content = content_of(real)
    except TooLargeError as error:
        _leave_out(entry, error, found)
        return None
    except OSError as error:
        found.errors.append(_unreadable(entry.path, error))
        return None
    if path.endswith(NOTEBOOK) and entry.walked and not any(word in content for word in RELEVANT):
        return None
    try:
        file = source_file(path, content, real=real, found=entry.walked)
    except SourceError as error:
        found.errors.append(error)
        return None
    if file.notebook is not None and not file.notebook.is_python:
        if not entry.walked:
            found.remarks.append(f"{path}: skipped, a notebook in {file.notebook.language}")
        return None
    if skips(file.content):
        if not entry.walked:
            found.remarks.append(f"{path}: left alone, it says `# migrate: skip-file`")
        return None
    return file


def _leave_out(entry: _Entry, error: TooLargeError, found: Found) -> None:
    """Say that a file is too large; where it was only met, that is no error."""
    if entry.walked:
        found.remarks.append(f"{entry.path}: skipped, {error.strerror}")
    else:
        found.errors.append(_unreadable(entry.path, error))


WAYS_OUT: tuple[tuple[type[OSError], str], ...] = (
    (FileNotFoundError, "Check the spelling; paths are relative to the current folder."),
    (PermissionError, "Give yourself permission to read it, or leave it out."),
)


def _unreadable(path: Path, error: OSError | ValueError) -> SourceError:
    way_out = next((text for kind, text in WAYS_OUT if isinstance(error, kind)), "Leave it out.")
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        way_out = "It is a link that leads nowhere: leave it out."
    elif str(path).startswith("-"):
        way_out = "After -- stand paths; with --verify, the arguments of the script."
    return SourceError(f"cannot be read: {reason_of(error)}", way_out, path=str(path))
