"""Text and elements. What is `Markup` has been escaped; the type checker sees to it that nothing else gets in."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import TYPE_CHECKING, NewType

if TYPE_CHECKING:
    from collections.abc import Iterable

Markup = NewType("Markup", str)

EMPTY = Markup("")
VOID = frozenset({"meta", "col"})
QUOTED = re.compile(r"`([^`\n]+)`")


def text(content: str) -> Markup:
    """Content as it is; characters that nobody would see, or that turn the direction of a line, by their numbers."""
    if content.isascii() and content.isprintable():
        return Markup(html.escape(content))
    return Markup("".join(html.escape(c) if _is_plain(c) else _shown(c) for c in content))


def _is_plain(character: str) -> bool:
    return character.isprintable() or character in "\t\n"


def number_of(character: str) -> str:
    """U+202E; a byte of a name that is not UTF-8 (PEP 383) as \\xff."""
    code = ord(character)
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"U+{code:04X}"


def _shown(character: str) -> str:
    name = unicodedata.name(character, "a control character, or a byte that is not UTF-8")
    return f'<span class="odd" title="{html.escape(name.lower())}">{number_of(character)}</span>'


def plain(content: str) -> str:
    """The same for places that hold no elements: titles and attributes."""
    return "".join(c if _is_plain(c) else f"[{number_of(c)}]" for c in content)


def sentence(content: str) -> Markup:
    """Text in which names stand in backticks."""
    parts = QUOTED.split(content)
    return join(tag("code", text(part)) if number % 2 else text(part) for number, part in enumerate(parts))


def join(parts: Iterable[Markup], between: str = "") -> Markup:
    """Pieces one after the other."""
    return Markup(html.escape(between).join(parts))


def tag(name: str, /, *children: Markup, **attributes: str | float | bool | None) -> Markup:
    """An element. `class_` is the attribute `class`, `aria_label` is `aria-label`; None and False leave one out."""
    given = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    return Markup(f"<{name}{given}>" if name in VOID else f"<{name}{given}>{''.join(children)}</{name}>")


def _attribute(key: str, value: str | float | bool) -> str:
    name = key.rstrip("_").replace("_", "-")
    if isinstance(value, bool):
        return f" {name}" if value else ""
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f' {name}="{html.escape(plain(shown))}"'
