"""Numbers of things, as sentences have them."""

from __future__ import annotations


def counted(number: int, thing: str) -> str:
    """3 files; 1 file."""
    return f"{number:,} {plural(number, thing)}"


def plural(number: int, thing: str) -> str:
    """The word for so many: files; file."""
    return thing if number == 1 else f"{thing}s"
