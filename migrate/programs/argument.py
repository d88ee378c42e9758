"""An argument of the accelerator's constructor."""

from __future__ import annotations

from dataclasses import dataclass

HANDLERS = "kwargs_handlers"


@dataclass(frozen=True, slots=True)
class Argument:
    """`Accelerator(name=expression)`.

    The expression is Python source with single quotes that means the same at home. Several `kwargs_handlers` are
    gathered in one list: each gives one handler.
    """

    name: str
    expression: str
    needs: frozenset[str] = frozenset()  # names and attributes that must have their values before: "args", "args.amp"
    imports: tuple[str, ...] = ()  # what the expression takes from the package of the accelerator
