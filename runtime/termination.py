"""The wish that a program ends, told by a signal: the script hears of it where it asks, on all processes together.

A scheduler that takes a machine back sends SIGTERM and kills a little later. Ended right there, a process would leave
the others waiting and the last steps unsaved; so the signal only leaves a note.
"""

from __future__ import annotations

import signal
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

from torch.utils.hooks import RemovableHandle

from runtime.errors import ConfigurationError

Hook = Callable[[], Any]


class Termination:
    """Notes of signals, and what is to be done before the end."""

    def __init__(self) -> None:
        self.is_asked = False
        self._hooks: OrderedDict[int, Hook] = OrderedDict()
        self._before: dict[int, Any] = {}

    def listen(self, hook: Hook | None, signals: Iterable[int]) -> RemovableHandle:
        """Take notes of these signals from now on.

        Raises:
            ConfigurationError: this is not the main thread, which Python gives signals to.
        """
        if threading.current_thread() is not threading.main_thread():
            raise ConfigurationError("on_termination() must be called in the main thread, which gets the signals.")
        for number in signals:
            if number not in self._before:
                self._before[number] = signal.signal(number, self._note)
        handle = RemovableHandle(self._hooks)
        self._hooks[handle.id] = hook or _nothing
        return handle

    def run_hooks(self) -> None:
        """Do what is to be done before the end, once."""
        hooks = list(self._hooks.values())
        self._hooks.clear()
        for hook in hooks:
            hook()

    def stop(self) -> None:
        """Give the signals back to what had them."""
        while self._before:
            number, before = self._before.popitem()
            signal.signal(number, signal.SIG_DFL if before is None else before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.is_asked = True


def _nothing() -> None:
    pass
