"""Statistics that each process took from its share of the data, joined."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import unused_name
from migrate.programs.training.measured_again import measured_again
from migrate.rules.layout import place

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


def join_statistics(conversion: Conversion, draft: Draft) -> None:
    """Make the statistics of batch normalization the means over all processes, where a model takes them anew."""
    for measured in measured_again(conversion):
        at = measured.statement
        if measured.model is None or not conversion.access.can_reach(at):
            draft.left(
                at,
                "each process takes these statistics from its share of the data",
                "give the model a name, and join its buffers below: accelerator.reduce(buffer, reduction='mean')",
            )
            continue
        name = unused_name(conversion.facts.tree(at), "statistic", "each_statistic")
        unit = place(conversion.facts.file(at), at).unit
        joined = f'{conversion.access.name(at)}.reduce({name}, reduction="mean")'
        code = (
            f"for {name} in {ast.unparse(measured.model)}.buffers():",
            f"{unit}if {name}.is_floating_point():",
            f"{unit}{unit}{name}.copy_({joined})",
        )
        draft.after(at, "\n".join(code))
