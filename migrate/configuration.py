"""The settings of a run: what the command line says, then what the project's pyproject.toml says."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrate.codes import codes
from migrate.errors import UsageError
from migrate.options import Hardware, Options, Target
from migrate.source import pyproject
from migrate.source.patterns import Patterns
from migrate.source.section import CHOICES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from migrate.source.pyproject import Settings


def configured(options: Options, folders: Iterable[Path]) -> Options:
    """The options with what the project says of what the command line leaves open; `folders` are what it names.

    Raises:
        UsageError: the settings cannot be read, or name what does not exist.
    """
    if options.is_settled:
        return options
    settings = pyproject.settings(folders, options.config)
    if settings is None:
        return replace(options, is_settled=True)
    changes = {
        name: read(settings)
        for key, (name, read) in _READERS.items()
        if key in settings.table and name not in options.given
    }
    if "known" in settings.table:
        changes["known_text"] = repr(settings.known)
    if settings.texts("exclude"):
        changes["exclude"] = (*options.exclude, _patterns(settings, settings.texts("exclude")))
    return replace(options, is_settled=True, **changes)


def folders_of(paths: Iterable[str]) -> Sequence[Path]:
    """The folders that arguments of the command line name or lie in."""
    found = []
    for path in paths:
        place = Path(path)
        try:
            found.append((place if place.is_dir() else place.parent).resolve())
        except (OSError, ValueError, RuntimeError):  # what is wrong with a path is said where it is read
            continue
    return found


def _choice(settings: Settings, key: str) -> str:
    name: str = settings.table[key]
    if name not in CHOICES[key]:
        allowed = ", ".join(CHOICES[key])
        raise UsageError(f"[tool.migrate] {key} is {name!r}", f"Allowed: {allowed}.", path=settings.path)
    return name


def _codes(settings: Settings, texts: Iterable[str]) -> tuple[str, ...]:
    with _named(settings):
        return codes(texts)


def _patterns(settings: Settings, globs: tuple[str, ...]) -> Patterns:
    with _named(settings):
        return Patterns(settings.folder, globs)


@contextmanager
def _named(settings: Settings) -> Iterator[None]:
    """Mistakes of the settings name the file that holds them."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"[tool.migrate] {error.what}", error.way_out, path=settings.path) from error


def _known(settings: Settings) -> Any:
    from migrate.analysis.known import user  # `migrate --help` does not need it

    return user.tables(settings.table, settings.path)


def _per_file(settings: Settings) -> tuple[tuple[Patterns, tuple[str, ...]], ...]:
    table: Mapping[str, Sequence[str]] = settings.table["per-file-ignores"]
    return tuple((_patterns(settings, (glob,)), _codes(settings, listed)) for glob, listed in table.items())


#: By key: the field of `Options`, and how it is read.
_READERS: Mapping[str, tuple[str, Callable[[Settings], Any]]] = {
    "target": ("target", lambda settings: Target(_choice(settings, "target"))),
    "for": ("hardware", lambda settings: Hardware(_choice(settings, "for"))),
    "select": ("select", lambda settings: _codes(settings, settings.texts("select"))),
    "ignore": ("ignore", lambda settings: _codes(settings, settings.texts("ignore"))),
    "review": ("review", lambda settings: settings.flag("review")),
    "force-exclude": ("force_exclude", lambda settings: settings.flag("force-exclude")),
    "respect-gitignore": ("gitignore", lambda settings: settings.flag("respect-gitignore")),
    "per-file-ignores": ("per_file_ignores", _per_file),
    "baseline": ("baseline", lambda settings: str(settings.folder / settings.table["baseline"])),
    "cache-dir": ("cache_dir", lambda settings: str(settings.folder / settings.table["cache-dir"])),
    "known": ("known", _known),
}
