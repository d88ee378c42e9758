"""What a program writes and says, looked for once for all rules that ask."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.output.speech import Speech, listen

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion


def speech(conversion: Conversion) -> Speech:
    """What the units of a program write. Asking for it settles which functions are handed the accelerator for that."""
    return conversion.once(_Heard).speech()


class _Heard:
    """What was found last. It rests on who has the accelerator, so it is looked for until nobody is handed it anew."""

    def __init__(self, conversion: Conversion) -> None:
        self._conversion = conversion
        self._said = Speech()
        self._handed: object = None  # who had the accelerator before and after that

    def speech(self) -> Speech:
        before = self._conversion.access.handed
        if self._handed != before:
            self._said = listen(self._conversion)
            self._handed = before if self._conversion.access.handed == before else None
        return self._said
