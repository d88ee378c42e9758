"""What a call hands over behind stars: `fit(*parts, **settings)`."""

from __future__ import annotations

import ast


def hidden(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call that do not say for which parameter they are: `*args`, `**kwargs`."""
    return [*starred(call), *unpacked(call)]


def starred(call: ast.Call) -> list[ast.expr]:
    """The `*args` of a call."""
    return [argument for argument in call.args if isinstance(argument, ast.Starred)]


def unpacked(call: ast.Call) -> list[ast.expr]:
    """The dictionaries that a call hands over by their keys, `**settings`."""
    return [keyword.value for keyword in call.keywords if keyword.arg is None]
