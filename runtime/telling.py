"""Warnings that name the script's own line, however deep inside they are found."""

from __future__ import annotations

import warnings


def tell(text: str) -> None:
    """Warn of the line of the script that has led here."""
    from runtime.watch.places import levels_to_script  # late, as all that few programs need

    warnings.warn(text, stacklevel=levels_to_script())
