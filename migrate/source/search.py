"""Where Python looks for the modules that a file imports.

A script's own folder comes first, then what it adds to `sys.path`; what it imports inherits that. Where a program is
started from is not known, so the folders above it, up to the project's top, and their `src` are tried last.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.source.above import folders_above
from migrate.source.disk import FOREIGN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from migrate.source.disk import Disk


#: What every training program imports: a file of the same name in a package, `helpers/torch.py`, is not what it means.
_LIBRARIES = frozenset({"torch", "torchvision", "numpy"})


@dataclass(frozen=True, slots=True)
class SearchPath:
    """The folders that are asked for an absolute import, in order."""

    sure: tuple[Path, ...]  # the script's folder and what is added to `sys.path`
    guessed: tuple[Path, ...]  # where the program may be started from
    script: Path | None = None  # the one that comes before the standard library
    added: tuple[Path, ...] = ()  # those of `sure` that the program itself names

    @property
    def folders(self) -> tuple[Path, ...]:
        """All of them."""
        return (*self.sure, *self.guessed)

    def asked_for(self, name: str) -> tuple[Path, ...]:
        """The folders that may hold a top-level module; the standard library comes before all but the script's own."""
        if name in sys.builtin_module_names:
            return ()
        if name in sys.stdlib_module_names:
            return (self.script,) if self.script is not None else ()
        return self.sure if name in _LIBRARIES else self.folders

    def inherited(self, own: SearchPath, place: Path | None, folder: Path) -> SearchPath:
        """The path of a module in `folder` that was found in `place` (None: by a relative import).

        `own` is the path that it would have as a script: what is found nowhere else may still be found there.
        """
        if place is None or place in self.sure:
            sure, script = (*self.sure, *own.added), self.script
        else:
            sure, script = (place, *own.added), place if place == folder else None
        rest = (*self.folders, *own.folders)
        return SearchPath(_unique(sure), _unique(p for p in rest if p not in sure), script, (*self.added, *own.added))


def script_path(
    folder: Path, roots: tuple[Path, ...], added: tuple[Path, ...], disk: Disk, *, is_script: bool
) -> SearchPath:
    """The path of a file that nothing is seen to import; a part of a package is taken to be started from above it."""
    package = next(
        (place for place in (folder, *folder.parents) if not disk.exists(str(place / "__init__.py"))), folder
    )
    home = folder if is_script else package
    sure = _unique((home, *added))
    rest = (*(root for root in roots if root != folder), folder)
    script = folder if folder == package else None
    return SearchPath(sure, _unique(root for root in rest if root not in sure), script, added)


def roots_of(folder: Path, disk: Disk) -> tuple[Path, ...]:
    """Where a script in `folder` may import from: its folder, those above it up to the project's top, their `src`."""
    return tuple(map(Path, folders_above(str(folder), str(Path.cwd().resolve()), disk)))


def top_of(roots: Iterable[Path]) -> Path:
    """The folder that holds the others."""
    return min(roots, key=lambda root: len(root.parts))


def _unique(paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(paths))


# --- what a program adds to sys.path --------------------------------------------------------------------------------


def added_folders(tree: ast.Module, real: Path, disk: Disk) -> tuple[Path, ...]:
    """The folders that a file names in `sys.path.append(...)`, `.insert(...)`, `.extend(...)`, `sys.path += [...]`."""
    known: dict[str, Path] = {"__file__": real}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            if (path := _path(node.value, known)) is not None:
                known[node.targets[0].id] = path
    named = (node for added in (*_additions(tree), *_handed(tree)) for node in added)
    paths = (_path(node, known) for node in named)
    return _unique(folder for path in paths if path is not None for folder in _folders(path, real.parent, disk))


def _additions(tree: ast.AST) -> Iterator[list[ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_sys_path(node.func.value):
            if node.func.attr in ("append", "insert"):
                yield node.args[-1:]
            elif node.func.attr == "extend" and node.args:
                yield getattr(node.args[0], "elts", [])
        elif isinstance(node, ast.AugAssign) and _is_sys_path(node.target):
            yield getattr(node.value, "elts", [])
        elif (
            isinstance(node, ast.Assign) and any(map(_is_sys_path, node.targets)) and isinstance(node.value, ast.BinOp)
        ):
            yield [*getattr(node.value.left, "elts", []), *getattr(node.value.right, "elts", [])]


def _handed(tree: ast.Module) -> Iterator[list[ast.expr]]:
    """What calls hand to a function of the file that puts its only parameter there: `add_path(folder)`."""
    adding = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and len(node.args.args) == 1
        for added in _additions(node)
        if any(isinstance(each, ast.Name) and each.id == node.args.args[0].arg for each in added)
    }
    for node in ast.walk(tree) if adding else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in adding:
            yield node.args[:1]


def _is_sys_path(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "path"
        and isinstance(node.value, ast.Name)
        and node.value.id == "sys"
    )


def _folders(path: Path, folder: Path, disk: Disk) -> Iterator[Path]:
    """The folders that exist under a path; a relative one is one of the current folder, most often the script's."""
    for base in (folder, Path.cwd()):
        try:
            real = Path(disk.real(str(base / path)))
        except (OSError, ValueError):
            continue
        if disk.is_dir(str(real)) and real != Path(real.anchor) and FOREIGN.isdisjoint(real.parts):
            yield real


def _path(node: ast.expr, known: dict[str, Path]) -> Path | None:
    """The path that an expression gives, as far as it is written out."""
    if isinstance(node, ast.Constant):
        return Path(node.value) if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.BinOp):
        return _joined(node, known)
    if isinstance(node, ast.Subscript):
        return _ancestor(node, known)
    if isinstance(node, ast.Attribute):
        if node.attr in ("pardir", "curdir"):
            return Path(".." if node.attr == "pardir" else ".")
        owner = _path(node.value, known) if node.attr == "parent" else None
        return _above(owner) if owner is not None else None
    return _called(node, known) if isinstance(node, ast.Call) else None


def _joined(node: ast.BinOp, known: dict[str, Path]) -> Path | None:
    """`folder / "name"`, `folder + "/name"`."""
    left, right = _path(node.left, known), _path(node.right, known)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Div):
        return left / right
    return Path(f"{left}{right}") if isinstance(node.op, ast.Add) else None


def _ancestor(node: ast.Subscript, known: dict[str, Path]) -> Path | None:
    """`Path(__file__).parents[1]`."""
    if not (isinstance(node.value, ast.Attribute) and node.value.attr == "parents"):
        return None
    owner = _path(node.value.value, known)
    if owner is None or not isinstance(node.slice, ast.Constant) or not isinstance(node.slice.value, int):
        return None
    return owner.parents[node.slice.value] if 0 <= node.slice.value < len(owner.parents) else None


def _called(node: ast.Call, known: dict[str, Path]) -> Path | None:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    given = [_path(argument, known) for argument in node.args]
    if name == "getcwd":
        return Path()
    if isinstance(node.func, ast.Attribute) and name in _METHODS and not given:
        return _path(node.func.value, known)
    if not given or None in given:
        return None
    paths = [path for path in given if path is not None]
    if isinstance(node.func, ast.Attribute) and name == "joinpath":
        owner = _path(node.func.value, known)
        return owner.joinpath(*paths) if owner is not None else None
    made = _FUNCTIONS.get(name)
    return made(paths) if made is not None else None


def _above(path: Path) -> Path:
    return path.parent


_METHODS = frozenset({"resolve", "absolute", "as_posix", "expanduser"})
#: By their own names only: what they give counts where it is a folder that exists.
_FUNCTIONS: dict[str, Callable[[list[Path]], Path]] = {
    "dirname": lambda paths: _above(paths[0]),
    "join": lambda paths: paths[0].joinpath(*paths[1:]),
    **{
        name: lambda paths: paths[0]
        for name in ("abspath", "realpath", "normpath", "expanduser", "fspath", "str", "Path", "PurePath")
    },
}
