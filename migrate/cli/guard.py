"""Errors become one line and an exit status."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING

from migrate.errors import MigrateError, reason_of
from migrate.report.stream import emit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TROUBLE = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def guarded(work: Callable[[], int], *, shows_traceback: bool) -> int:
    """The exit status of the work."""
    try:
        return work()
    except KeyboardInterrupt:
        return interrupted()
    except MigrateError as error:
        emit(f"migrate: {error}\n", sys.stderr)
        cause: BaseException = error
    except Exception as error:  # noqa: BLE001 (a person should see one line, not our stack)
        emit(f"migrate: {_said(error)}\n", sys.stderr)
        cause = error
    if shows_traceback:
        trace([cause])
    return TROUBLE


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in _NO_ROOM:  # where the help is printed, say
        return f"{reason_of(error)}. Make room, or lead the output elsewhere."
    what = f"{type(error).__name__}: {error}"
    return f"a bug of ours: {what}. Please report it; --traceback shows where it happened."


def interrupted() -> int:
    """Say that a person has ended the run; its exit status."""
    emit("migrate: interrupted\n", sys.stderr)
    return INTERRUPTED


def trace(causes: Sequence[BaseException]) -> None:
    """Show where each error came from."""
    import traceback  # rarely needed

    for cause in causes:
        emit("".join(traceback.format_exception(cause)), sys.stderr)
