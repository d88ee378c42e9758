"""A program that runs in several processes, as one process runs it.

What several processes are for goes away: joining a group, starting them, wrapping the model, sharing the samples out,
telling each other. What is left is a program that any rule can convert; the accelerator gives it its processes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.alone.groups import groups

if TYPE_CHECKING:
    from migrate.alone.stage import Stage
    from migrate.analysis.facts import Facts


def stages(facts: Facts) -> list[Stage]:
    """One for each group of files that run in several processes."""
    if not (found := groups(facts)):
        return []
    from migrate.alone.stage import stage  # and forty modules more, which most scripts do not need

    return [made for group in found if (made := stage(facts, group)) is not None]
