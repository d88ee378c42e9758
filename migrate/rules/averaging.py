"""A number of each process, and the code that makes it one over all of them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.shares.averages import Average, Joint

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


def average_over(conversion: Conversion, draft: Draft, average: Average) -> None:
    """Make a number one over the processes: where it stands, or under its name after a statement."""
    code = _joined(conversion, average)
    if isinstance(average.at, ast.expr):
        draft.wrap(average.at, draft.quoted(average.at, code))
        return
    is_list = average.joint is Joint.MEANS  # which is filled in its place: others may hold it
    to = f"{average.name}[:]" if is_list else average.name
    draft.after(average.at, draft.quoted(average.at, f"{to} = {code.format(it=average.name)}"))


def _joined(conversion: Conversion, average: Average) -> str:
    """A number made one over the processes, as code with a hole; Accelerate reduces tensors only."""
    accelerator = conversion.access.name(average.at)
    if average.joint is Joint.MEANS:
        return each_averaged(conversion, accelerator, "{it}")
    if average.joint in (Joint.LEAST, Joint.MOST):
        if average.is_tensor:
            return f"{accelerator}.gather({{it}}).{average.joint.value}()"
        return f"{average.joint.value}({accelerator}.gather_for_metrics([{{it}}]))"
    is_mean = average.joint is Joint.MEAN
    if average.is_tensor or conversion.package == "runtime":
        how = ", reduction='mean'" if is_mean else ""
        return f"{accelerator}.reduce({{it}}{how})"
    share = f" / {accelerator}.num_processes" if is_mean else ""
    return f"sum({accelerator}.gather_for_metrics([{{it}}])){share}"


def each_averaged(conversion: Conversion, accelerator: str, name: str) -> str:
    """The numbers of a list, each made one over the processes, as code; Accelerate reduces tensors only."""
    if conversion.package == "runtime":
        return f"{accelerator}.reduce({name}, reduction='mean')"
    return f"[sum(each) / {accelerator}.num_processes for each in zip(*{accelerator}.gather_for_metrics([{name}]))]"
