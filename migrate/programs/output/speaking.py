"""Which calls speak, by themselves, and which functions do, by themselves or by what they call: each is asked once."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.programs.output.folders import may_be_there
from migrate.programs.reach.callees import Reaching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.units import Function
    from migrate.programs.output.voice import Voice


class Speaking:
    """What one program's functions say, wherever they are called."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice
        self._facts = voice.conversion.facts
        self._spoken: dict[ast.Call, bool] = {}
        self._made: dict[Function, list[ast.Call]] = {}
        #: Whether a function, or one that it calls, writes anything, other than folders that may be there.
        self.speaks = Reaching(self._says, self._entered)

    def is_spoken(self, call: ast.Call) -> bool:
        """Whether a call itself prints, writes, or makes what does."""
        if call not in self._spoken:
            self._spoken[call] = self._is_spoken(call)
        return self._spoken[call]

    def folders(self, unit: Function) -> list[ast.Call]:
        """The folders that a function makes if they are not there."""
        if unit not in self._made:
            self._made[unit] = may_be_there(self._facts, unit)
        return self._made[unit]

    def _is_spoken(self, call: ast.Call) -> bool:
        voice, outputs = self._voice, self._voice.outputs
        if voice.own.is_own(call):
            return False
        says = output.PRINT in self._facts.called(call) or outputs.writes(call)
        return says or outputs.opens(call) or outputs.services.starts(call) or voice.writers.is_one(call)

    def _calls(self, unit: Function) -> Iterator[ast.Call]:
        folders = self.folders(unit)
        return (call for call in self._facts.own(unit).of(ast.Call) if call not in folders)

    def _says(self, unit: Function) -> bool:
        return any(map(self.is_spoken, self._calls(unit)))

    def _entered(self, unit: Function) -> Iterator[Function]:
        return (target for call in self._calls(unit) for target in self._facts.targets(call))
