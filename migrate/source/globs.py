"""One glob, as `.gitignore` and ruff have them."""

from __future__ import annotations

import re

from migrate.errors import UsageError

#: What a pattern's pieces match; the longer piece comes first.
_PIECES = (("**/", "(?:.*/)?"), ("**", ".*"), ("*", "[^/]*"), ("?", "[^/]"))
_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^]]*\]|.", re.DOTALL)


def compiled(glob: str) -> re.Pattern[str]:
    """What fully matches a name, or a path with slashes.

    Raises:
        UsageError: the glob means nothing, such as one with the range [z-a].
    """
    try:
        return re.compile(_regex(glob), re.DOTALL)
    except re.error as error:
        way_out = "Write what stands in brackets as in [abc], [a-z] or [!0-9]."
        raise UsageError(f"{glob!r} is no pattern: {error.msg}", way_out) from error


def _regex(glob: str) -> str:
    known = dict(_PIECES)
    tokens = _TOKEN.findall(glob.removeprefix("./").lstrip("/").rstrip("/"))
    return "".join(known.get(token) or _other(token) for token in tokens)


def _other(token: str) -> str:
    if token.startswith("[") and token not in ("[", "[]", "[!]"):
        inside = token[1:-1].replace("\\", "\\\\")
        return f"[^{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    return re.escape(token)
