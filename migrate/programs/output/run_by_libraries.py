"""Functions that a program hands to a library, which calls them: `Thread(target=write)`, `atexit.register(save)`.

No statement that a guard could stand around calls them, and what they are called with is the library's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.analysis.units import Function
from migrate.programs.output.guards import is_left_to_main
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from migrate.analysis.units import Call
    from migrate.programs.conversion import Conversion


def run_by_libraries(conversion: Conversion) -> set[Function]:
    """Those that every process hands on, with what they call, as far as they are no units of the program as well."""

    def is_handed(call: Call) -> bool:
        is_mine = call.handed is not None and call.caller in conversion.units
        return is_mine and not is_left_to_main(conversion, call.node)

    facts = conversion.facts
    handed = [unit for unit in facts.functions if any(map(is_handed, facts.callers(unit)))]
    below = (unit for unit in reached(facts, handed) if isinstance(unit, Function))
    return {unit for unit in below if unit not in conversion.units and facts.is_editable(unit)}
