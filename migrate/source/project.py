"""The files of one run, and the project's own modules that they import.

Named files may be edited. Imported ones are followed for facts only, on demand, and never out of the project: a module
counts as the project's own when it lies below the project's top folder and not in an installation (`site-packages`).
"""

from __future__ import annotations

import os
import re
import sys
import tokenize
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.errors import SourceError
from migrate.source.address import Index
from migrate.source.parse import parse

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping, Sequence


# A file that holds none of these has no training loop; it is parsed only when it is named itself or imported.
RELEVANT = (b"torch", b".backward(")
TOP_MARKS = (".git", ".hg", "pyproject.toml", "setup.py", "setup.cfg")  # what the top folder of a project holds
FOREIGN = frozenset({"site-packages", "dist-packages", "node_modules", ".venv", "venv", ".git"})


@dataclass(eq=False)
class SourceFile:
    """A file's bytes and, when asked for, its tree. Two are equal only if they are the same object."""

    path: str  # as the user knows it; what messages show
    content: bytes
    named: bool = True  # asked for on the command line, so it may be edited
    real: Path | None = None  # absolute, without links; None for text that is not in a file
    found: bool = False  # met while walking through a named folder, not named itself

    @cached_property
    def _parsed(self) -> ast.Module | SourceError:
        try:
            return parse(self.content, self.path)
        except SourceError as error:
            return error

    @property
    def error(self) -> SourceError | None:
        """Why there is no tree."""
        return self._parsed if isinstance(self._parsed, SourceError) else None

    @property
    def tree(self) -> ast.Module:
        """The syntax tree.

        Raises:
            SourceError: it does not parse.
        """
        if isinstance(self._parsed, SourceError):
            raise self._parsed
        return self._parsed

    @cached_property
    def index(self) -> Index:
        """The address of every statement and expression of the tree."""
        return Index(self.tree)

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The decoded lines without their ends, split where Python splits: `lines[node.lineno - 1]`."""
        parts = iter(self.content.splitlines(keepends=True))
        encoding, _ = tokenize.detect_encoding(lambda: next(parts, b""))
        return tuple(re.split(r"\r\n|\r|\n", self.content.decode(encoding)))

    def place(self, node: ast.expr | ast.stmt) -> tuple[int, int, int]:
        """First line, column in characters, last line of a node: all 1-based, as people and editors count."""
        before = self.lines[node.lineno - 1].encode()[: node.col_offset]  # `ast` counts columns in UTF-8 bytes
        return node.lineno, len(before.decode()) + 1, node.end_lineno or node.lineno

    @property
    def folder(self) -> Path:
        """Where it lies; the current folder for text that is not in a file."""
        return self.real.parent if self.real else Path.cwd()

    @property
    def is_relevant(self) -> bool:
        """Whether the text could hold a training loop."""
        return any(word in self.content for word in RELEVANT)


@dataclass(eq=False)
class Project:
    """Files that may be edited (`files`), what is wrong with others (`errors`), and modules on demand (`resolve`)."""

    named: Sequence[SourceFile]
    _loaded: dict[Path, SourceFile | None] = field(default_factory=dict, repr=False)  # by real path
    _roots: dict[Path, tuple[Path, ...]] = field(default_factory=dict, repr=False)  # by folder, nearest first
    _names: dict[Path, frozenset[str]] = field(default_factory=dict, repr=False)  # what a folder holds

    def __post_init__(self) -> None:
        self._loaded.update({file.real: file for file in self.named if file.real})

    @cached_property
    def files(self) -> tuple[SourceFile, ...]:
        """The named files that parse and could hold a training loop, in order."""
        return tuple(file for file in self._candidates if not file.error)

    @cached_property
    def errors(self) -> tuple[SourceError, ...]:
        """Why others of them do not parse."""
        return tuple(file.error for file in self._candidates if file.error)

    @cached_property
    def _candidates(self) -> tuple[SourceFile, ...]:
        return tuple(file for file in self.named if file.is_relevant or not file.found)

    def replaced(self, contents: Mapping[str, bytes]) -> Project:
        """The same project after an edit: `contents` has new bytes by `SourceFile.path`. Nothing is read again."""
        named = [replace(f, content=contents[f.path]) if f.path in contents else f for f in self.named]
        return Project(named, dict(self._loaded), self._roots, self._names)

    def without(self, paths: frozenset[str]) -> Project:
        """The same project, in which these files are no longer named: followed for facts, not edited."""
        named = [file for file in self.named if file.path not in paths]
        others = {f.real: replace(f, named=False) for f in self.named if f.path in paths and f.real}
        return Project(named, {**self._loaded, **others}, self._roots, self._names)

    def resolve(self, module_name: str, level: int, from_file: SourceFile) -> SourceFile | None:
        """The project's own file that `from <level dots><module_name> import ...` in `from_file` reads.

        None for a module that is not the project's, that is a folder without `__init__.py`, or that does not parse.
        """
        parts = tuple(module_name.split(".")) if module_name else ()
        roots = self._roots_of(from_file.folder)
        if level:
            places = (from_file.folder, *from_file.folder.parents)[level - 1 : level]
        else:
            places = _searched(parts[0], roots, self._names_in(roots[0])) if parts else ()
        found = next((path for place in places if (path := self._find(place, parts))), None)
        return self._load(found, _top(roots)) if found else None

    def _find(self, place: Path, parts: tuple[str, ...]) -> Path | None:
        """The path of a module below a folder: a package comes before a module of the same name, as in Python."""
        if parts and not {parts[0], f"{parts[0]}.py"} & self._names_in(place):
            return None
        base = place.joinpath(*parts)
        candidates = [base / "__init__.py", *([base.with_name(f"{base.name}.py")] if parts else [])]
        return next((path for path in candidates if path.is_file()), None)

    def _load(self, path: Path, top: Path) -> SourceFile | None:
        real = path.resolve()
        if real not in self._loaded:
            self._loaded[real] = _read_module(real, top)
        file = self._loaded[real]
        return file if file and not file.error else None

    def _roots_of(self, folder: Path) -> tuple[Path, ...]:
        if folder not in self._roots:
            self._roots[folder] = _roots(folder)
        return self._roots[folder]

    def _names_in(self, folder: Path) -> frozenset[str]:
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(os.listdir(folder))
            except OSError:
                self._names[folder] = frozenset()
        return self._names[folder]


def _roots(folder: Path) -> tuple[Path, ...]:
    """Where a script in `folder` may import from: its folder, those above it up to the project's top, their `src`."""
    chain = (folder, *folder.parents)
    marked = next((n for n, place in enumerate(chain) if any((place / mark).exists() for mark in TOP_MARKS)), 0)
    package = next((n for n, place in enumerate(chain) if not (place / "__init__.py").exists()), 0)
    here = Path.cwd().resolve()
    current = chain.index(here) if here in chain[:-1] else 0  # not the root of the file system
    above = chain[: max(marked, package, current) + 1]
    sources = (place / "src" for place in above)
    return (*above, *(source for source in sources if source.is_dir() and source not in above))


def _top(roots: tuple[Path, ...]) -> Path:
    return min(roots, key=lambda root: len(root.parts))


def _searched(name: str, roots: tuple[Path, ...], beside: frozenset[str]) -> tuple[Path, ...]:
    """The roots that are asked for a module: one of the standard library is shadowed by a script's own folder only."""
    if name in sys.builtin_module_names:
        return ()
    if name in sys.stdlib_module_names:
        return () if "__init__.py" in beside else roots[:1]
    return roots


def _read_module(real: Path, top: Path) -> SourceFile | None:
    """A module that was not named; None if it is not the project's own, or not readable."""
    if not real.is_relative_to(top) or not FOREIGN.isdisjoint(real.relative_to(top).parts):
        return None
    try:
        content = real.read_bytes()
    except OSError:
        return None
    return SourceFile(_shown(real), content, named=False, real=real)


def _shown(real: Path) -> str:
    """A real path as a user in the current folder would type it."""
    here = Path.cwd().resolve()
    return str(real.relative_to(here) if real.is_relative_to(here) else real)
