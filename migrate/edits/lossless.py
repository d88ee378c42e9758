"""The tree that libcst makes of a text, where it gives back each byte of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from migrate.edits.ends import without_blank_end
from migrate.errors import EditError

if TYPE_CHECKING:
    from migrate.edits.editable import EditableFile


class NotLossless(EditError):
    """libcst would change parts of the file that nobody asked to change."""

    is_our_bug = False


def read(content: bytes, file: EditableFile) -> tuple[cst.Module, bytes]:
    """The tree, and the blank lines behind it, which libcst loses; `file` is what the text is of.

    Raises:
        NotLossless: libcst cannot reproduce the text.
    """
    try:
        module = cst.parse_module(content)
    except cst.ParserSyntaxError as error:
        what = f"libcst does not read the file: {error.message.splitlines()[0]}"
        raise NotLossless(what, "Convert it by hand.", path=file.path, line=error.raw_line) from error
    if module.bytes == content:
        return module, b""
    content, blank = without_blank_end(content)
    module = cst.parse_module(content)
    if module.bytes != content:
        raise NotLossless("libcst does not reproduce the file", _way_out(file, module), path=file.path)
    return module, blank


def _way_out(file: EditableFile, module: cst.Module) -> str:
    pairs = zip(file.content.splitlines(), module.bytes.splitlines(), strict=False)
    line = next((n for n, (old, new) in enumerate(pairs, 1) if old != new), len(file.content.splitlines()))
    return f"Look at line {line}: unusual white space there is the usual cause."
