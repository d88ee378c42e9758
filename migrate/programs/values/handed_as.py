"""The parameters that a call hands an expression over for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.values.sources import passed

if TYPE_CHECKING:
    import ast

    from migrate.analysis.units import Function


def handed_as(call: ast.Call, unit: Function, given: ast.expr) -> list[str]:
    """The parameters of a function for which one of its calls hands an expression over, in plain sight."""
    site = unit.calls.get(call)
    return [] if site is None else [name for name in unit.parameter_names if passed(site, unit, name) is given]
