"""An argument of the accelerator's constructor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

CPU = "cpu"
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
    below: frozenset[ast.AST] = frozenset()  # what must have run before, wherever it stands


def names_needed(arguments: Iterable[Argument]) -> str:
    """The names that arguments need, without what is asked of one of them: `args`, not `args` and `args.device`."""
    names = {name for argument in arguments for name in argument.needs if name != "self"}
    inner = {n for n in names for other in names - {n} if re.search(rf"(?<![\w.]){re.escape(other)}(?!\w)", n)}
    return ", ".join(sorted(names - inner))
