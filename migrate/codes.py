"""The codes of all rules and reasons, with their names, and which of them a user's list means.

Rules and reasons take their names from here: whoever only wants to know whether there is such a code, as every hook
does where the project's settings name some, imports no rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: By code: the name, which may be used wherever the code may.
NAMES: Mapping[str, str] = {
    "MIG001": "unconverted-loop",
    "MIG002": "guarded-collective",
    "MIG100": "accelerator",
    "MIG101": "device-choice",
    "MIG102": "model-placement",
    "MIG103": "batch-moves",
    "MIG104": "prepare",
    "MIG105": "backward-call",
    "MIG106": "grad-scaler",
    "MIG107": "autocast",
    "MIG108": "accumulation",
    "MIG109": "gradient-clipping",
    "MIG110": "data-parallel",
    "MIG111": "process-group",
    "MIG113": "rank-guards",
    "MIG114": "metrics",
    "MIG115": "saving",
    "MIG116": "loading",
    "MIG117": "output",
    "MIG118": "schedulers",
    "MIG119": "model-attributes",
    "MIG120": "hidden-device",
    "MIG121": "to-the-host",
    "MIG122": "agreement",
    "MIG123": "one-seed",
    "MIG124": "metric-sync",
    "MIG125": "waiting",
    "MIG901": "no-home",
    "MIG902": "no-optimizer",
    "MIG903": "without-loader",
    "MIG904": "out-of-reach",
    "MIG905": "bound-reached",
    "MIG906": "half-converted",
    "MIG907": "loop-out-of-sight",
    "MIG908": "cells-out-of-order",
    "MIG909": "ignored-beside",
    "MIG910": "not-started",
    "MIG998": "not-editable",
    "MIG999": "bug",
}
_CODES = {name: code for code, name in NAMES.items()}


def codes(texts: Iterable[str]) -> tuple[str, ...]:
    """The codes, or beginnings of codes, that a user's list means: `MIG105,prepare` or `MIG1`.

    Raises:
        UsageError: no rule is called so.
    """
    words = [word.strip() for text in texts for word in text.split(",")]
    return tuple(code(word) for word in words if word)


def code(word: str) -> str:
    """The code, or beginning of codes, that one word of a user means.

    Raises:
        UsageError: no rule is called so.
    """
    if word.lower() in _CODES:
        return _CODES[word.lower()]
    if any(code.startswith(word.upper()) for code in NAMES):
        return word.upper()
    import difflib  # only for those who have mistyped

    close = difflib.get_close_matches(word.lower(), [*_CODES, *map(str.lower, NAMES)], n=1, cutoff=0.5)
    meant = f"Did you mean {close[0].upper() if close[0].upper() in NAMES else close[0]}? " if close else ""
    raise UsageError(f"{word!r} is not a rule", f"{meant}`migrate --rules` lists them.")
