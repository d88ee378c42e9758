"""Why a cell cannot be started on several processes."""

from __future__ import annotations

from migrate.errors import EditError


class NotStarted(EditError):
    """What stands in the way, and the way out; `cell` says where."""

    is_our_bug = False
    code = "MIG910"
