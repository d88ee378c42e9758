"""What a program says through the standard library's logging."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value

_LEVELS = frozenset("debug info warning warn error critical exception log".split())
_PROGRESS = frozenset({"debug", "info"})


def logs(facts: Facts, call: ast.Call) -> bool:
    """`logging.info(...)`, or the same on what logging.getLogger gave, also by a name: `print = logger.info`."""
    if any(name.startswith("logging.") and name.rpartition(".")[2] in _LEVELS for name in facts.called(call)):
        return True
    made = (value.origin for value in _asked(facts, call))
    return any(isinstance(origin, ast.Call) and "logging.getLogger" in facts.called(origin) for origin in made)


def tells_progress(facts: Facts, call: ast.Call) -> bool:
    """The same without warnings and errors: trouble may be one process's own, and every process tells it."""
    return isinstance(call.func, ast.Attribute) and call.func.attr in _PROGRESS and logs(facts, call)


def _asked(facts: Facts, call: ast.Call) -> Iterator[Value]:
    """The objects whose method for a level of trouble is called."""
    if isinstance(call.func, ast.Attribute):
        yield from facts.receiver(call) if call.func.attr in _LEVELS else ()
        return
    for value in facts.values(call.func):
        if value.role is Role.METHOD and value.name in _LEVELS and value.receiver is not None:
            yield value.receiver
