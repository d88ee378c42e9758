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
_STATEMENT = re.compile(rb"[ \t]*(?:from|import)\b[^\n(\\]*(?:\\\r?\n[^\n(\\]*)*(?:\([^)]*\))?")
_IMPORT = b"import"
_GOES_ON = (b"\\", b"\\\r")  # a line that ends so
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
    return frozenset(_NAME.findall(b"\n".join(import_statements(content))))


def import_statements(content: bytes) -> list[bytes]:
    """What looks like an import statement in a text, over all its lines.

    Each has the word `import`, for which a text is searched much faster than for a pattern.
    """
    found = []
    end, at = 0, content.find(_IMPORT)
    while at >= 0:
        starting = (_STATEMENT.match(content, start) for start in _starts(content, end, at))
        if statement := next((match for match in starting if match is not None and match.end() > at), None):
            found.append(statement[0])
            end = statement.end()
        at = content.find(_IMPORT, max(end, at + len(_IMPORT)))
    return found


def _starts(content: bytes, end: int, at: int) -> list[int]:
    """Where a statement behind `end` may begin that a place is in: the lines that go on to its own, the first first."""
    starts = [content.rfind(b"\n", end, at) + 1 or end]
    while starts[0] > end and content.endswith(_GOES_ON, end, starts[0] - 1):  # `from a.b \`, and here `import c`
        starts.insert(0, content.rfind(b"\n", end, starts[0] - 1) + 1 or end)
    return starts


def module_name(file: SourceFile) -> bytes:
    """The last name under which a file is imported."""
    place = file.real
    if place is None:
        return b""
    return os.fsencode(place.parent.name if place.stem == "__init__" else place.stem)
