"""How the page looks. Colours are tables, so that a test can compute the contrast of every pair that meets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.report.html.sheet import CODE_SHEET, PAGE_SHEET, PICTURE_SHEET

if TYPE_CHECKING:
    from collections.abc import Mapping

LIGHT = {
    "page": "#ffffff",
    "panel": "#f6f8fa",
    "raised": "#ffffff",
    "line": "#d1d9e0",
    "ink": "#1f2328",
    "quiet": "#59636e",
    "link": "#0550ae",
    "focus": "#0550ae",
    "good": "#116329",
    "good-panel": "#dafbe1",
    "bad": "#a40e26",
    "bad-panel": "#ffebe9",
    "warn": "#7d4e00",
    "warn-panel": "#fff8c5",
    "note": "#0550ae",
    "note-panel": "#ddf4ff",
    "gone": "#ffebe9",
    "gone-mark": "#ffc9c4",
    "come": "#e6ffec",
    "come-mark": "#b4f1c1",
    "keyword": "#a40e26",
    "string": "#0a3069",
    "comment": "#4c545d",
    "number": "#0550ae",
    "defined": "#6639ba",
    "odd": "#ffffff",
    "odd-panel": "#a40e26",
    "data": "#0550ae",
    "model": "#6639ba",
    "loss": "#a40e26",
    "optimizer": "#116329",
    "scheduler": "#7d4e00",
    "arrow": "#59636e",
    "c0": "#0550ae",
    "c1": "#b3400a",
    "c2": "#116329",
    "c3": "#8250df",
    "c4": "#a40e26",
    "c5": "#57606a",
    "c6": "#7d4e00",
    "c7": "#1b6e78",
}
DARK = {
    "page": "#0d1117",
    "panel": "#151b23",
    "raised": "#1c232c",
    "line": "#3d444d",
    "ink": "#e6edf3",
    "quiet": "#9aa4af",
    "link": "#6cb0ff",
    "focus": "#6cb0ff",
    "good": "#56d364",
    "good-panel": "#12261e",
    "bad": "#ff9a92",
    "bad-panel": "#301b1e",
    "warn": "#e3b341",
    "warn-panel": "#2b2411",
    "note": "#79c0ff",
    "note-panel": "#121d2f",
    "gone": "#301b1e",
    "gone-mark": "#612428",
    "come": "#12261e",
    "come-mark": "#19502b",
    "keyword": "#ff9a92",
    "string": "#a5d6ff",
    "comment": "#b1bac4",
    "number": "#89c8ff",
    "defined": "#dcbdfb",
    "odd": "#0d1117",
    "odd-panel": "#ff9a92",
    "data": "#79c0ff",
    "model": "#d2a8ff",
    "loss": "#ff9a92",
    "optimizer": "#56d364",
    "scheduler": "#e3b341",
    "arrow": "#9aa4af",
    "c0": "#79c0ff",
    "c1": "#ffa657",
    "c2": "#56d364",
    "c3": "#d2a8ff",
    "c4": "#ff9a92",
    "c5": "#b1bac4",
    "c6": "#e3b341",
    "c7": "#76e3ea",
}
#: What is read on what: WCAG AA asks for 4.5. The code's colours stand on each of its grounds.
CODE = ("ink", "keyword", "string", "comment", "number", "defined")
GROUNDS = ("page", "gone", "gone-mark", "come", "come-mark")
READ = (
    *((colour, ground) for colour in CODE for ground in (*GROUNDS, "panel", "raised")),
    *((colour, ground) for colour in ("ink", "quiet", "link") for ground in ("page", "panel", "raised")),
    *((colour, f"{colour}-panel") for colour in ("good", "bad", "warn", "note")),
    *((colour, ground) for colour in ("good", "bad", "warn", "note") for ground in ("page", "panel", "raised")),
    *((colour, f"{kind}-panel") for colour in ("ink", "link") for kind in ("good", "bad", "warn", "note")),
    *(("quiet", ground) for ground in ("gone", "come")),
    ("odd", "odd-panel"),
)
#: What is seen beside what, and is no text: 3.
SEEN = (
    *((part, "raised") for part in ("data", "model", "loss", "optimizer", "scheduler")),
    *((colour, ground) for colour in ("arrow", "focus") for ground in ("page", "panel", "raised")),
    *((f"c{number}", "page") for number in range(8)),
)

MONO = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace'
SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif'


def _variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


def style() -> str:
    """The style sheet."""
    themes = (
        f":root{{color-scheme:light;{_variables(LIGHT)}--mono:{MONO};--sans:{SANS}}}"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{_variables(DARK)}}}}}"
        f":root[data-theme=dark]{{color-scheme:dark;{_variables(DARK)}}}"
    )
    curves = "".join(
        f".c{number} path{{stroke:var(--c{number});stroke-dasharray:{dashes}}}"
        f".c{number} circle{{fill:var(--c{number})}}"
        for number, dashes in enumerate(("none", "7 4", "2 3", "10 3 2 3", "5 2", "1 4", "12 4", "4 4 1 4"))
    )
    return f"{themes}{PAGE_SHEET}{CODE_SHEET}{PICTURE_SHEET}{curves}"
