"""The evaluated arguments of one call, and what can be said of a result from them alone."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import tensors
from migrate.analysis.roles import NOTHING, Role, Value, Values, computed, of_role

if TYPE_CHECKING:
    from migrate.analysis.state import State
    from migrate.analysis.units import Handed


class Arguments:
    """The arguments of one call, evaluated.

    `rest` are those that follow a `*sequence` of unknown length: any of them may stand at any later position. `others`
    are those of a `**mapping` whose keys are not known, `loose` those of which nobody knows which parameter takes them.
    `site` is where what the call makes counts as made; `handed` says what is written of them where the call is one that
    a library makes.
    """

    __slots__ = ("handed", "loose", "named", "node", "others", "positional", "rest", "site")

    def __init__(
        self,
        node: ast.Call,
        positional: list[Values] | None = None,
        named: dict[str, Values] | None = None,
        rest: Values = NOTHING,
        others: Values = NOTHING,
    ) -> None:
        self.node = self.site = node
        self.positional = positional if positional is not None else []
        self.named = named if named is not None else {}
        self.rest = rest
        self.others = others
        self.loose: Values = NOTHING
        self.handed: Handed | None = None

    def all(self) -> Values:
        """Every value that is passed."""
        if not self.named and not self.rest and not self.loose and not self.others and len(self.positional) < 2:
            return self.positional[0] if self.positional else NOTHING
        return NOTHING.union(self.rest, self.others, self.loose, *self.positional, *self.named.values())

    def has(self, position: int, keyword: str) -> bool:
        """Whether the argument at a position or under its keyword was seen to be passed."""
        return keyword in self.named or position < len(self.positional) or bool(self.rest)

    def has_unknown(self) -> bool:
        """Whether nothing is known of one of the arguments."""
        return not all(self.positional) or not all(self.named.values())

    def at(self, position: int, keyword: str) -> Values:
        """The argument at a position or under its keyword."""
        if keyword in self.named:
            return self.named[keyword]
        return self.positional[position] if position < len(self.positional) else self.rest

    def after(self, count: int) -> Arguments:
        """The arguments without the first ones."""
        return self._with(self.positional[count:], self.named, self.rest, self.others)

    def behind(self, bound: Arguments) -> Arguments:
        """These arguments after those that were bound before, as `functools.partial` passes them on."""
        if bound.rest:  # what stands where is not known any more
            positional, rest = bound.positional, bound.rest.union(self.rest, *self.positional)
        else:
            positional, rest = [*bound.positional, *self.positional], self.rest
        return self._with(positional, {**bound.named, **self.named}, rest, bound.others | self.others)

    def _with(self, positional: list[Values], named: dict[str, Values], rest: Values, others: Values) -> Arguments:
        changed = Arguments(self.node, positional, named, rest, others)
        changed.site, changed.loose, changed.handed = self.site, self.loose, self.handed
        return changed


def tensor(state: State, arguments: Arguments) -> Values:
    """A tensor; nothing as long as one of the arguments may still turn out to be a batch."""
    if arguments.has_unknown() and not state.settled:
        return NOTHING
    return frozenset({Value(Role.TENSOR, arguments.node)})


def unknown(node: ast.Call, arguments: Arguments) -> Values:
    """A function nobody knows: what it gives depends on the batches that went in, and holds what the program sets."""
    given = arguments.all()
    return computed(given, Role.STATISTIC) | of_role(given, Role.PARAMETERS) | {Value(Role.UNKNOWN, node)}


def folds(name: str, call: ast.Call, *, is_method: bool) -> bool:
    """Whether a call of a tensor's method, or of a function whose first argument is the tensor, folds its rows away."""
    if name in tensors.FOLDING:
        return True
    if name not in tensors.FOLDING_WITHOUT_DIM:
        return False
    further = call.args if is_method else call.args[1:]
    dims = [keyword.value for keyword in call.keywords if keyword.arg in ("dim", "axis")] + further[:1]
    return not dims or any(isinstance(dim, ast.Constant) and dim.value == 0 for dim in dims)
