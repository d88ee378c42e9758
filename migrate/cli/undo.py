"""`--undo-patch`: the way back, written before the files are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.errors import WriteError, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.report.model import Change

WAY_OUT = "Name a file that does not exist yet, in a folder that does."


def check(path: str) -> None:
    """See that a patch can be written.

    Raises:
        WriteError: there is such a file, or no such folder.
    """
    if Path(path).exists():
        raise WriteError("the file for --undo-patch exists already", WAY_OUT, path=path)
    if not Path(path).absolute().parent.is_dir():
        raise WriteError("there is no such folder for --undo-patch", WAY_OUT, path=path)


def write(path: str, changes: Iterable[Change]) -> None:
    """Write the patch that makes the old files of the new ones. `git apply` and `patch -p1` take it.

    Raises:
        WriteError: it cannot be written, or somebody else has written it meanwhile.
    """
    from migrate.report.diff import diff

    content = diff(replace(change, old=change.new, new=change.old) for change in changes)
    is_ours = False
    try:
        with open(path, "xb") as stream:
            is_ours = True
            stream.write(content)
    except OSError as error:
        if is_ours:
            Path(path).unlink(missing_ok=True)  # half a way back is none
        raise WriteError(f"the undo patch cannot be written: {reason_of(error)}", WAY_OUT, path=path) from error
