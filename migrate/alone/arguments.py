"""What a call is given, as it is written there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """What a call gives under a keyword, with the keyword; None: nothing, unless by `**`."""
    return next((each for each in call.keywords if each.arg == name), None)


def argument(call: ast.Call, name: str, position: int) -> ast.expr | None:
    """What a call gives for a parameter, by its keyword or at its position; None: nothing, unless by `*` or `**`."""
    if (named := keyword(call, name)) is not None:
        return named.value
    return call.args[position] if position < len(call.args) else None
