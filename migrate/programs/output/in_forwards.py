"""What the forwards of a program's models print: no call in the text names them, and every process runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.programs.output.voice import Voice
from migrate.programs.reach.forwards import forwards_inside

if TYPE_CHECKING:
    from migrate.analysis.units import Function
    from migrate.programs.conversion import Conversion


def speaking_forwards(conversion: Conversion) -> list[Function]:
    """The forwards that print or write unasked, in source order; the units of the program are told already."""
    facts, voice = conversion.facts, Voice(conversion)
    calls = [use.node for use in conversion.speaking_uses if Role.MODEL in roles(facts.values(use.node.func))]
    found = {unit for call in calls for unit in forwards_inside(facts, call)} - {*conversion.units}
    speaking = (unit for unit in found - {*conversion.program.outsiders} if voice.speaks_unasked(unit))
    return sorted(speaking, key=lambda unit: (unit.module.path, unit.node.lineno))
