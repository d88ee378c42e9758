"""Whether two files are the same, byte by byte."""

from __future__ import annotations

import hashlib
import os


def digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of what is in a file."""
    total = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            total.update(block)
    return total.hexdigest()
