"""How the lines of a file end, and how the file itself does."""

from __future__ import annotations

import re

NEWLINES = re.compile(rb"\r\n|\r|\n")
_BLANK = b" \t\r\n"


def usual_newline(content: bytes, default: str) -> str:
    """The end of most lines."""
    counts: dict[bytes, int] = {}
    for end in NEWLINES.findall(content):
        counts[end] = counts.get(end, 0) + 1
    return max(counts, key=lambda end: counts[end]).decode() if counts else default


def without_blank_end(content: bytes) -> tuple[bytes, bytes]:
    """The file up to the end of its last line that is not blank, and the blank lines behind, which libcst loses."""
    end = len(content.rstrip(_BLANK))
    newline = NEWLINES.match(content, end + len(content[end:]) - len(content[end:].lstrip(b" \t")))
    cut = newline.end() if newline is not None else len(content)
    return content[:cut], content[cut:]
