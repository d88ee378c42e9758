"""Whether files can be told at a glance to have nothing to do with training: most files that a hook is given.

What `parts` says of them, for a tenth of the time: nothing is imported here that takes longer than reading a small
file. It errs to one side only. All that a file's imports may mean is looked at, in every folder that Python might look
in, and what is not plain (notebooks, links, changes of `sys.path`, comments to migrate, a baseline, mistakes) is not
answered.
"""

from __future__ import annotations

import os
from stat import S_ISREG
from typing import TYPE_CHECKING

from migrate.codes import codes
from migrate.errors import MigrateError
from migrate.source.above import folders_above
from migrate.source.disk import Disk
from migrate.source.globs import compiled
from migrate.source.parse import parse
from migrate.source.parts import imports_of
from migrate.source.reach import BY_NAME, CONVERTED, TRAINS
from migrate.source.reading import content_of
from migrate.source.section import CHOICES, KEYS, nearest, section

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

# A file that holds one of these is looked at properly: it may train, import anything, or speak to migrate.
_WORDS = (*TRAINS, CONVERTED, *BY_NAME, b"sys.path", b"migrate:")
#: Settings that change nothing where nothing is found. A baseline also tells what is found no longer, and rows about
#: libraries are checked by those who have the tables.
_SILENT = KEYS.keys() - {"baseline", "known"}


def is_plain(paths: Sequence[str]) -> bool:
    """Whether all of these are Python files that parse, and neither they nor what they import can train."""
    try:
        files = {os.path.realpath(path): _content(path) for path in paths}
        known = {path: content for path, content in files.items() if content is not None}
        return len(known) == len(files) and _are_silent(known) and _leads_nowhere(known)
    except (OSError, ValueError, RecursionError, MigrateError):  # what is wrong is said by those who read it properly
        return False


def _content(path: str) -> bytes | None:
    """The bytes of an ordinary file that parses and holds none of the words; None of any other."""
    if not path.endswith(".py") or not S_ISREG(os.lstat(path).st_mode):
        return None
    content = content_of(path)
    if any(word in content for word in _WORDS):
        return None
    parse(content, path)
    return content


def _are_silent(files: Iterable[str]) -> bool:
    """Whether what the project says of these files is in order, and changes nothing where nothing is found."""
    path = nearest(map(os.path.dirname, files))
    table = section(path, path) if path is not None else None
    return table is None or (table.keys() <= _SILENT and _means_something(table))


def _means_something(table: Mapping[str, Any]) -> bool:
    """Whether the values of settings do, or an error where rules or patterns do not."""
    per_file: Mapping[str, Sequence[str]] = table.get("per-file-ignores", {})
    for listed in (table.get("select", ()), table.get("ignore", ()), *per_file.values()):
        codes(listed)
    for glob in (*table.get("exclude", ()), *per_file):
        compiled(glob)
    return all(table[key] in choices for key, choices in CHOICES.items() if key in table)


def _leads_nowhere(named: Mapping[str, bytes]) -> bool:
    """Whether no file that these may import, directly or not, holds one of the words."""
    disk, here, files = Disk(named), os.path.realpath(os.getcwd()), list(named)
    places: dict[str, None] = {}  # all of them are asked for what any of the files imports
    seen: dict[str, bytes] = {}
    while True:
        known = len(seen), len(places)
        for file in files:
            if file not in seen:
                content = disk.content(file)
                if content is None or any(word in content for word in _WORDS):
                    return False
                seen[file] = content
                places.update(dict.fromkeys(folders_above(os.path.dirname(file), here, disk)))
        files = [found for file, content in seen.items() for found in _imported(file, content, tuple(places), disk)]
        if known == (len(seen), len(places)) and all(file in seen for file in files):
            return True


def _imported(file: str, content: bytes, places: Sequence[str], disk: Disk) -> Iterator[str]:
    """Every file that an import of a file may mean."""
    for module, level in dict.fromkeys(imports_of(content)):
        names = module.split(".") if module else []
        for place in places if not level else _above(file, level):
            if names and not {names[0], f"{names[0]}.py"} & disk.names(place):
                continue
            for end in range(len(names) + 1):
                base = os.path.join(place, *names[:end])
                for path in (f"{base}.py", os.path.join(base, "__init__.py")):
                    if (end or level) and disk.is_file(path):
                        yield disk.real(path)


def _above(file: str, level: int) -> tuple[str, ...]:
    """The folder that a relative import starts from."""
    folder = os.path.dirname(file)
    for _ in range(level - 1):
        folder = os.path.dirname(folder)
    return (folder,)
