"""What is asked of the disk beside the named files: through one door, so that it can be told afterwards what was asked.

A result rests on the answers, also on those that say that something is *not* there. `migrate/cache.py` keeps a result
with the questions that led to it: it is right as long as each has the same answer. Paths are text, for `glance`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from migrate.source.reading import content_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    Asked = tuple[str, str]  # the question, the absolute path

FOREIGN = frozenset({"site-packages", "dist-packages", "node_modules", ".venv", "venv", ".git"})  # installations
SOURCES = (".py", ".ipynb")


class Disk:
    """The disk as one run sees it: what was asked once is not asked again.

    `texts` are contents that go before those on the disk, by absolute path without links: what an editor has not saved.
    """

    def __init__(self, texts: Mapping[str, bytes] | None = None, answers: dict[Asked, Any] | None = None) -> None:
        self.texts = texts or {}
        self.asked: set[Asked] = set()  # through this object: see `noting`
        self.walked: dict[str, int] = {}  # by folder: how many files of `sources` were looked at
        self._answers: dict[Asked, Any] = {} if answers is None else answers

    def noting(self) -> Disk:
        """The same disk, with the same answers and a list of its own of what is asked from now on."""
        return Disk(self.texts, self._answers)

    def exists(self, path: str) -> bool:
        """Whether there is something."""
        return bool(self.answer(("exists", path)))

    def is_file(self, path: str) -> bool:
        """Whether there is a file, or a link to one."""
        return bool(self.answer(("file", path)))

    def is_dir(self, path: str) -> bool:
        """Whether there is a folder, or a link to one."""
        return bool(self.answer(("folder", path)))

    def real(self, path: str) -> str:
        """The path without links."""
        return str(self.answer(("real", path)))

    def names(self, folder: str) -> frozenset[str]:
        """What in a folder may be a module, by its name; nothing if it cannot be read."""
        found: frozenset[str] = self.answer(("names", folder))
        return found

    def content(self, path: str) -> bytes | None:
        """The bytes of a file; None if it cannot be read."""
        found: bytes | None = self.texts.get(path) if path in self.texts else self.answer(("content", path))
        return found

    def sources(self, top: str) -> Iterator[str]:
        """The Python files and notebooks below a folder, not those of installations and hidden folders, in order."""
        listed: _Listing = self._answers.setdefault(("sources", top), _Listing(top))
        for number, path in enumerate(listed, 1):
            self.walked[top] = max(self.walked.get(top, 0), number)
            yield path
        self.walked[top] = len(listed.found) + 1  # that there are no more was asked, too

    def hides(self, path: str) -> None:
        """Note that a result rests on whether this file, though it is there, counts as no part of the project."""
        self.asked.add(("hidden", path))

    def answer(self, asked: Asked) -> Any:
        """The answer to one question."""
        self.asked.add(asked)
        if asked not in self._answers:
            question, path = asked
            self._answers[asked] = self._real(path) if question == "real" else _QUESTIONS[question](path)
        return self._answers[asked]

    def _real(self, path: str) -> str:
        """The path without links; of the files in one folder, those of the folder are looked for once."""
        folder, name = os.path.split(path)
        if not os.path.isabs(path) or name in ("", os.curdir, os.pardir) or os.path.islink(path):
            return os.path.realpath(path)
        if ("real folder", folder) not in self._answers:
            self._answers["real folder", folder] = os.path.realpath(folder)
        return os.path.join(self._answers["real folder", folder], name)


def _names(folder: str) -> frozenset[str]:
    try:
        return frozenset(name for name in os.listdir(folder) if name.isidentifier() or name.endswith(".py"))
    except OSError:
        return frozenset()


def _content(path: str) -> bytes | None:
    try:
        return content_of(path)
    except (OSError, ValueError):
        return None


class _Listing:
    """The files below a folder, looked for as far as somebody asked; whoever asks for more goes on from there."""

    def __init__(self, top: str) -> None:
        self.found: list[str] = []
        self._rest = _sources(top)

    def __iter__(self) -> Iterator[str]:
        number = 0
        while number < len(self.found) or self._went_on():
            yield self.found[number]
            number += 1

    def _went_on(self) -> bool:
        path = next(self._rest, None)
        if path is not None:
            self.found.append(path)
        return path is not None


def _sources(top: str) -> Iterator[str]:
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(n for n in folders if n not in FOREIGN and not n.startswith("."))
        yield from (f"{folder}{os.sep}{name}" for name in sorted(names) if name.endswith(SOURCES))


_QUESTIONS: Mapping[str, Callable[[str], Any]] = {
    "exists": os.path.exists,
    "file": os.path.isfile,
    "folder": os.path.isdir,
    "names": _names,
    "content": _content,
}
