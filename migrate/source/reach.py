"""Which of the files met in a folder may lead to a training loop, by their text alone.

Those that call `backward`, those that import such a file, those that import these, and so on. It is far cheaper to ask
the text than to parse: a word too many costs a file that is read for nothing.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.source.project import SourceFile

TRAINS = (b"backward", b"NativeScaler", b"ApexScaler")  # of the last two, calling them is a whole step
CONVERTED = b"ccelerat"  # Accelerator, accelerate, accelerator: loops that are converted have mistakes of their own
_IMPORT = re.compile(rb"^[ \t]*(?:from|import)\b[^\n(\\]*(?:\\\r?\n[^\n(\\]*)*(?:\([^)]*\))?", re.MULTILINE)
_NAME = re.compile(rb"[^\W\d]\w*")
BY_NAME = (b"import_module", b"__import__")  # any module may be meant


def leading_to_training(files: Iterable[SourceFile]) -> set[SourceFile]:
    """The files that train, and those that import them, directly or not."""
    waiting: list[SourceFile] = []
    importers: dict[bytes, list[SourceFile]] = defaultdict(list)
    for file in files:
        if any(word in file.content for word in (*TRAINS, *BY_NAME)):
            waiting.append(file)
        for name in file.imported:
            importers[name].append(file)
    found = set(waiting)
    while waiting:
        new = [file for file in importers.get(module_name(waiting.pop()), ()) if file not in found]
        found.update(new)
        waiting.extend(new)
    return found


def imported_names(content: bytes) -> frozenset[bytes]:
    """Every name in the import statements of a text: modules, packages, and what is taken from them."""
    return frozenset(name for statement in import_statements(content) for name in _NAME.findall(statement))


def import_statements(content: bytes) -> list[bytes]:
    """What looks like an import statement in a text, over all its lines."""
    return _IMPORT.findall(content)


def module_name(file: SourceFile) -> bytes:
    """The last name under which a file is imported."""
    place = file.real
    if place is None:
        return b""
    return os.fsencode(place.parent.name if place.stem == "__init__" else place.stem)
