"""Messages that are said once, by one process."""

from __future__ import annotations

import logging

logger = logging.getLogger("runtime")
_said: set[str] = set()


def warn_once(message: str, *, rank: int) -> None:
    """Warn on rank 0 only, and each message once in the life of the process."""
    if rank != 0 or message in _said:
        return
    _said.add(message)
    logger.warning(message)
