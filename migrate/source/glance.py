"""Whether files can be told at a glance to have nothing to do with training: most files that a hook is given.

What `parts` says of them, for a tenth of the time: nothing is imported here that takes longer than reading a small
file. It errs to one side only. All that a file's imports may mean is looked at, in every folder that Python might look
in, and what is not plain (notebooks, links, changes of `sys.path`, settings of the project, comments to migrate,
mistakes) is not answered.
"""

from __future__ import annotations

import importlib
import os
import sys
from stat import S_ISREG
from typing import TYPE_CHECKING

from migrate.errors import SourceError
from migrate.source.above import folders_above
from migrate.source.disk import Disk
from migrate.source.parse import parse
from migrate.source.parts import imports_of
from migrate.source.reach import BY_NAME, CONVERTED, TRAINS
from migrate.source.reading import content_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# A file that holds one of these is looked at properly: it may train, import anything, or speak to migrate.
_WORDS = (*TRAINS, CONVERTED, *BY_NAME, b"sys.path", b"migrate:")
_SETTINGS, _SECTION = "pyproject.toml", "migrate"


def is_plain(paths: Sequence[str]) -> bool:
    """Whether all of these are Python files that parse, and neither they nor what they import can train."""
    try:
        files = {os.path.realpath(path): _content(path) for path in paths}
        known = {path: content for path, content in files.items() if content is not None}
        return len(known) == len(files) and not _is_set(known) and _leads_nowhere(known)
    except (OSError, ValueError, SourceError):  # what is wrong is said by those who read it properly
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


def _is_set(files: Iterable[str]) -> bool:
    """Whether the nearest pyproject.toml holds a section for migrate."""
    place = os.path.commonpath([os.path.dirname(file) for file in files])
    while not os.path.isfile(os.path.join(place, _SETTINGS)):
        above = os.path.dirname(place)
        if above == place:
            return False
        place = above
    with open(os.path.join(place, _SETTINGS), "rb") as stream:
        content = stream.read()
    return _SECTION.encode() in content and _has_section(content)


def _has_section(content: bytes) -> bool:
    """Whether settings are for migrate, and do not only name it; what cannot be read is left to those who say so."""
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    tools = toml.loads(content.decode()).get("tool", {})
    return not isinstance(tools, dict) or _SECTION in tools


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
