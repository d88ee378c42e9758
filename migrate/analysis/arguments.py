"""The evaluated arguments of one call, and what can be said of a result from them alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import tensors
from migrate.analysis.roles import FROM_LOADER, NOTHING, Role, Value, Values

if TYPE_CHECKING:
    from collections.abc import Iterable


class Arguments:
    """The arguments of one call, evaluated."""

    __slots__ = ("named", "node", "positional")

    def __init__(self, node: ast.Call, positional: list[Values], named: dict[str | None, Values]) -> None:
        self.node = node
        self.positional = positional
        self.named = named

    def all(self) -> Values:
        """Every value that is passed."""
        return frozenset().union(*self.positional, *self.named.values())

    def has(self, position: int, keyword: str) -> bool:
        """Whether the argument at a position or under its keyword was seen to be passed."""
        return keyword in self.named or (
            position < len(self.positional) and not any(isinstance(a, ast.Starred) for a in self.node.args)
        )

    def at(self, position: int, keyword: str) -> Values:
        """The argument at a position or under its keyword."""
        if keyword in self.named:
            return self.named[keyword]
        if position < len(self.positional) and not any(isinstance(a, ast.Starred) for a in self.node.args):
            return self.positional[position]
        return NOTHING


def unknown(node: ast.Call, arguments: Arguments) -> Values:
    """A function nobody knows: what it gives depends on the batches that went in, and holds what the program sets."""
    from_loader = {Value(Role.STATISTIC, value.origin) for value in arguments.all() if value.role in FROM_LOADER}
    return frozenset({Value(Role.UNKNOWN, node), *from_loader, *handed(arguments.all())})


def handed(values: Iterable[Value]) -> Values:
    return frozenset(value for value in values if value.role is Role.PARAMETERS)


def folds(name: str, arguments: Arguments) -> bool:
    """Whether a function or method folds the rows of a batch away."""
    if name in tensors.FOLDING:
        return True
    if name not in tensors.FOLDING_WITHOUT_DIM:
        return False
    given = arguments.node.args[1:] if _is_function(arguments.node) else arguments.node.args
    dims = [k.value for k in arguments.node.keywords if k.arg in ("dim", "axis")] + list(given[:1])
    return not dims or any(isinstance(d, ast.Constant) and d.value == 0 for d in dims)


def _is_function(node: ast.Call) -> bool:
    """torch.sum(x, 1) against x.sum(1)."""
    return (
        isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id
        in (
            "torch",
            "F",
            "np",
        )
    )
