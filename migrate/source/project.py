"""The files of one run, and the project's own modules that they import.

Named files may be edited. Imported ones are followed for facts only, on demand, and never out of the project: a module
counts as the project's own when it lies below the project's top folder and not in an installation (`site-packages`).
"""

from __future__ import annotations

import ast
import re
import tokenize
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from migrate.errors import SourceError
from migrate.source.address import Index
from migrate.source.disk import FOREIGN, Disk
from migrate.source.parse import parse
from migrate.source.reach import TRAINS, imported_names, leading_to_training
from migrate.source.search import SearchPath, added_folders, roots_of, script_path, top_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from migrate.source.notebook import Notebook


# A file that holds none of these has no training loop; it is parsed only when it is named itself or imported.
RELEVANT = (b"torch", b".backward(")

NOTEBOOK = ".ipynb"  # how the name of one ends

_Import: TypeAlias = tuple[str, int, Path]  # module, level, importing file


@dataclass(eq=False)
class SourceFile:
    """A file's bytes and, when asked for, its tree. Two are equal only if they are the same object."""

    path: str  # as the user knows it; what messages show
    content: bytes
    named: bool = True  # asked for on the command line, so it may be edited
    real: Path | None = None  # absolute, without links; None for text that is not in a file
    found: bool = False  # met while walking through a named folder, not named itself
    notebook: Notebook | None = None  # whose cells `content` is; its own bytes are there

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

    def told(self, line: int) -> str:
        """A line as messages name it: 12; "cell 3:12" of a notebook."""
        if self.notebook is None:
            return str(line)
        cell, inside = self.notebook.place(line)
        return f"cell {cell}:{inside}"

    @cached_property
    def imported(self) -> frozenset[bytes]:
        """Every name in its import statements, by its text."""
        return imported_names(self.content)

    @property
    def folder(self) -> Path:
        """Where it lies; the current folder for text that is not in a file."""
        return self.real.parent if self.real else Path.cwd()

    @property
    def is_relevant(self) -> bool:
        """Whether the text could hold a training loop."""
        return any(word in self.content for word in RELEVANT)


def source_file(
    path: str, content: bytes, *, named: bool = True, real: Path | None = None, found: bool = False
) -> SourceFile:
    """The file that these bytes are: Python, or a notebook, going by the path.

    Raises:
        SourceError: the path is a notebook's, and the bytes are none; or it trains, and a cell does not parse.
    """
    if not path.endswith(NOTEBOOK):
        return SourceFile(path, content, named, real, found)
    from migrate.source.notebook import read  # few runs meet one

    notebook = read(content, path)
    try:
        module = notebook.module if notebook.is_python else b""
    except SourceError:
        if any(word in content for word in TRAINS):
            raise
        module = b""  # such a cell never runs, and cells that are left unfinished are no news of a notebook
    return SourceFile(path, module, named, real, found, notebook)


def _unnamed(path: str, content: bytes, real: Path) -> SourceFile:
    """A file that is only asked what it takes from others; one that cannot be read takes nothing."""
    try:
        return source_file(path, content, named=False, real=real)
    except SourceError:
        return SourceFile(path, b"", named=False, real=real)


@dataclass(eq=False)
class Project:
    """Files that may be edited (`files`), what is wrong with others (`errors`), and modules on demand (`resolve`)."""

    named: Sequence[SourceFile]
    _loaded: dict[Path, SourceFile | None] = field(default_factory=dict, repr=False)  # by real path
    _roots: dict[Path, tuple[Path, ...]] = field(default_factory=dict, repr=False)  # by folder, nearest first
    _paths: dict[Path, SearchPath] = field(default_factory=dict, repr=False)  # by real path, or folder of a text
    _resolved: dict[_Import, SourceFile | None] = field(default_factory=dict, repr=False)
    hidden: frozenset[Path] = frozenset()  # by real path: files that are no part of this, though they are there
    _beside: dict[str, SourceFile] = field(default_factory=dict, repr=False)  # files that are no part of it, by path
    _said: dict[str, tuple[set[bytes], set[bytes]]] = field(default_factory=dict, repr=False)  # of these: see `says`
    disk: Disk = field(default_factory=Disk, repr=False)

    def __post_init__(self) -> None:
        self._loaded.update({file.real: file for file in self.named if file.real})

    @cached_property
    def files(self) -> tuple[SourceFile, ...]:
        """The named files that parse and could hold a training loop, in order."""
        return tuple(file for file in self.candidates if not file.error)

    @cached_property
    def errors(self) -> tuple[SourceError, ...]:
        """Why others of them do not parse."""
        return tuple(file.error for file in self.candidates if file.error)

    @cached_property
    def candidates(self) -> tuple[SourceFile, ...]:
        """The named files that have to parse: those that could hold a training loop, or were named themselves."""
        return tuple(file for file in self.named if file.is_relevant or not file.found)

    @cached_property
    def entries(self) -> tuple[SourceFile, ...]:
        """Those that were named themselves, and of those that were found the ones that may lead to a training loop."""
        leading = leading_to_training(file for file in self.named if file.found)
        return tuple(file for file in self.named if not file.found or file in leading)

    def replaced(self, contents: Mapping[str, bytes]) -> Project:
        """The same project after an edit: `contents` has new bytes by `SourceFile.path`. Nothing is read again."""
        named = [replace(f, content=contents[f.path]) if f.path in contents else f for f in self.named]
        return self._with(named, dict(self._loaded), self.hidden)

    def beside(self, path: str) -> SourceFile:
        """A file that is no part of the project; without content if it cannot be read."""
        if path not in self._beside:
            self._beside[path] = _unnamed(path, self.disk.content(path) or b"", Path(path))
        return self._beside[path]

    def says(self, path: str, words: AbstractSet[bytes]) -> bool:
        """Whether one of the words stands in a file that is no part of the project: each is looked for once."""
        said, missing = self._said.setdefault(path, (set(), set()))
        if not said.isdisjoint(words):
            return True
        if unknown := words - missing:
            content = self.disk.content(path) or b""
            found = next((word for word in unknown if word in content), None)
            if found is not None:
                said.add(found)
                return True
            missing.update(unknown)
        return False

    def hiding(self, paths: frozenset[str]) -> Project:
        """The same project as if these named files were not there."""
        named = [file for file in self.named if file.path not in paths]
        gone = frozenset(file.real for file in self.named if file.path in paths and file.real)
        loaded = {**self._loaded, **dict.fromkeys(gone)}
        return self._with(named, loaded, self.hidden | gone)

    def afresh(self) -> Project:
        """The same project before anything was asked of it. What either reads is there for both."""
        return self._with(list(self.named), self._loaded, self.hidden)

    def without(self, paths: frozenset[str]) -> Project:
        """The same project, in which these files are no longer named: followed for facts, not edited."""
        named = [file for file in self.named if file.path not in paths]
        others = {f.real: replace(f, named=False) for f in self.named if f.path in paths and f.real}
        return self._with(named, {**self._loaded, **others}, self.hidden)

    def _with(self, named: list[SourceFile], loaded: dict[Path, SourceFile | None], hidden: frozenset[Path]) -> Project:
        """Another choice of the same files, which are not read again."""
        return Project(
            named, loaded, self._roots, hidden=hidden, _beside=self._beside, _said=self._said, disk=self.disk
        )

    def noting(self) -> Project:
        """The same project before anything was asked of it, with a disk that knows what it is asked from now on."""
        return Project(self.named, dict.fromkeys(self.hidden), hidden=self.hidden, disk=self.disk.noting())

    def resolve(self, module_name: str, level: int, from_file: SourceFile) -> SourceFile | None:
        """The project's own file that `from <level dots><module_name> import ...` in `from_file` reads.

        None for a module that is not the project's, that is a folder without `__init__.py`, or that does not parse.
        """
        key = (module_name, level, from_file.real or from_file.folder)
        if key not in self._resolved:
            self._resolved[key] = self._resolve(module_name, level, from_file)
        return self._resolved[key]

    def _resolve(self, module_name: str, level: int, from_file: SourceFile) -> SourceFile | None:
        parts = tuple(module_name.split(".")) if module_name else ()
        path = self._path_of(from_file)
        for place in self._places(parts, level, from_file):
            if (found := self._find(place, parts)) is not None:
                file = self._load(found, (top_of(self._roots_of(from_file.folder)), *path.added))
                if file is not None and file.real is not None and file.real not in self._paths:
                    own = self._own_path(file)
                    self._paths[file.real] = path.inherited(own, None if level else place, file.folder)
                return file
        return None

    def unparsed(self, module_name: str, level: int, from_file: SourceFile) -> SourceFile | None:
        """The project's own file that such an import reads and that does not parse; None where all is well."""
        parts = tuple(module_name.split(".")) if module_name else ()
        if self.resolve(module_name, level, from_file) is not None:
            return None
        found = (path for place in self._places(parts, level, from_file) if (path := self._find(place, parts)))
        if (path := next(found, None)) is None:
            return None
        real = Path(self.disk.real(str(path)))
        file = self._loaded.get(real) or self._read_module(real, (top_of(self._roots_of(from_file.folder)),))
        return file if file is not None and file.error else None

    def folder(self, module_name: str, level: int, from_file: SourceFile) -> SourceFile | None:
        """A folder without `__init__.py` under this name, as the empty package that Python takes it for."""
        parts = tuple(module_name.split(".")) if module_name else ()
        for place in self._places(parts, level, from_file):
            if not parts or parts[0] in self._names_in(place):
                folder = place.joinpath(*parts)
                if self.disk.is_dir(str(folder)):
                    real = Path(self.disk.real(str(folder))) / "__init__.py"
                    if self._loaded.get(real) is None:
                        self._loaded[real] = SourceFile(_shown(real), b"", named=False, real=real)
                    return self._loaded[real]
        return None

    def top(self, file: SourceFile) -> Path:
        """The top folder of the project that a file belongs to."""
        return top_of(self._roots_of(file.folder))

    def shown(self, path: Path) -> str:
        """A path as a user in the current folder would type it."""
        return _shown(path.resolve())

    def modules_in(self, package: SourceFile) -> tuple[str, ...]:
        """The names of the modules that lie in the folder of a package, packages among them, in order."""
        inside = (name for name in self.packages_in(package) if self._is_package(package.folder / name))
        return tuple(sorted({*self._modules_at(package.folder), *inside}))

    def _is_package(self, folder: Path) -> bool:
        return "__init__.py" in self._names_in(folder)

    def _modules_at(self, folder: Path) -> list[str]:
        names = self._names_in(folder)
        return [n[:-3] for n in names if n.endswith(".py") and n[:-3].isidentifier() and n[0] != "_"]

    def modules_added(self, file: SourceFile) -> tuple[str, ...]:
        """The names of the modules in the folders, other than the file's own, that its program adds to `sys.path`."""
        folders = [folder for folder in self._path_of(file).added if folder != file.folder]
        return tuple(sorted({name for folder in folders for name in self._modules_at(folder)}))

    def packages_in(self, package: SourceFile) -> tuple[str, ...]:
        """The names of the folders in the folder of a package that may be packages, in order."""
        names = self._names_in(package.folder)
        return tuple(sorted(n for n in names if n.isidentifier() and n[0] != "_" and self._is_folder(package, n)))

    def _is_folder(self, package: SourceFile, name: str) -> bool:
        return self.disk.is_dir(str(package.folder / name))

    def _places(self, parts: tuple[str, ...], level: int, from_file: SourceFile) -> tuple[Path, ...]:
        if level:
            return (from_file.folder, *from_file.folder.parents)[level - 1 : level]
        return self._path_of(from_file).asked_for(parts[0]) if parts else ()

    def _path_of(self, file: SourceFile) -> SearchPath:
        """Where a file's imports are looked for: as its importer's, where it was imported before this was asked."""
        key = file.real or file.folder
        if key not in self._paths:
            self._paths[key] = self._own_path(file)
        return self._paths[key]

    def _own_path(self, file: SourceFile) -> SearchPath:
        added = (*self._added(file), *(folder for beside in self._set_up_by(file) for folder in self._added(beside)))
        is_script = file.notebook is not None or b"__main__" in file.content
        return script_path(file.folder, self._roots_of(file.folder), added, self.disk, is_script=is_script)

    def _added(self, file: SourceFile) -> tuple[Path, ...]:
        """What a file adds to `sys.path`."""
        if file.real is None or file.error is not None or b"sys.path" not in file.content:
            return ()
        return added_folders(file.tree, file.real, self.disk)

    def _set_up_by(self, file: SourceFile) -> Iterator[SourceFile]:
        """The modules beside a file that it imports as a whole, which may add to the path of both: `import _paths`."""
        names = self._names_in(file.folder) if file.real is not None and file.error is None else frozenset[str]()
        for node in file.tree.body if names else ():
            for alias in node.names if isinstance(node, ast.Import) else ():
                beside = file.folder / f"{alias.name}.py"
                if beside.name in names and (found := self._load(beside, (file.folder,))) is not None:
                    yield found

    def _find(self, place: Path, parts: tuple[str, ...]) -> Path | None:
        """The path of a module below a folder: a package comes before a module of the same name, as in Python."""
        if parts and not {parts[0], f"{parts[0]}.py"} & self._names_in(place):
            return None
        base = place.joinpath(*parts)
        candidates = [base / "__init__.py", *([base.with_name(f"{base.name}.py")] if parts else [])]
        return next((path for path in candidates if self.disk.is_file(str(path))), None)

    def _load(self, path: Path, tops: tuple[Path, ...]) -> SourceFile | None:
        real = Path(self.disk.real(str(path)))
        self.disk.hides(str(real))
        if real not in self._loaded:
            self._loaded[real] = self._read_module(real, tops)
        file = self._loaded[real]
        return file if file and not file.error else None

    def _roots_of(self, folder: Path) -> tuple[Path, ...]:
        if folder not in self._roots:
            self._roots[folder] = roots_of(folder, self.disk)
        return self._roots[folder]

    def _names_in(self, folder: Path) -> frozenset[str]:
        return self.disk.names(str(folder))

    def _read_module(self, real: Path, tops: tuple[Path, ...]) -> SourceFile | None:
        """A module that was not named; None if it lies below none of the folders, or cannot be read."""
        if not any(real.is_relative_to(top) and FOREIGN.isdisjoint(real.relative_to(top).parts) for top in tops):
            return None
        content = self.disk.content(str(real))
        return None if content is None else SourceFile(_shown(real), content, named=False, real=real)


def _shown(real: Path) -> str:
    """A real path as a user in the current folder would type it."""
    here = Path.cwd().resolve()
    return str(real.relative_to(here) if real.is_relative_to(here) else real)
