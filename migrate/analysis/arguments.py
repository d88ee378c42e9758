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


def turns(name: str, call: ast.Call, *, is_method: bool) -> bool:
    """Whether the samples may not be the first dimension of what a call of a tensor's method or function gives."""
    if name == "einsum":
        return bool(call.args) and _turns_by_rule(call.args[0])
    if name not in tensors.TURNING | tensors.CUTTING:
        return False
    given = call.args[0 if is_method else 1 :]
    if name in tensors.CUTTING and name != "unbind":  # into how many comes before
        given = given[1:]
    named = [keyword.value for keyword in call.keywords if keyword.arg in _DIMENSIONS]
    dims = [_number(each) for each in _flat([*given, *named])]
    known = [dim for dim in dims if dim is not None]
    if not dims or len(known) < len(dims):
        return True
    return known[0] != 0 if name == "permute" else not _none_is_first(known)


#: What the dimensions are called that a tensor is turned or cut by.
_DIMENSIONS = frozenset("dim dims axis dim0 dim1 axis0 axis1 source destination".split())


def _turns_by_rule(rule: ast.expr) -> bool:
    """`torch.einsum("bti->tbi", x)`: what is first in the result is first in none of the tensors."""
    text = rule.value.replace(" ", "") if isinstance(rule, ast.Constant) and isinstance(rule.value, str) else ""
    taken, arrow, result = text.partition("->")
    return bool(arrow) and "." not in text and result[:1] not in {each[:1] for each in taken.split(",")}


def _none_is_first(dims: list[int]) -> bool:
    """Whether none of some dimensions is the first: with a dimension 2 there are 3, so -2 is none."""
    return 0 not in dims and min(dims) >= -max(0, *dims)


def _flat(nodes: list[ast.expr]) -> list[ast.expr]:
    """Expressions with those of tuples and lists in their place: `x.permute((0, 2, 1))`."""
    return [inner for node in nodes for inner in (node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node])]


def _number(node: ast.expr) -> int | None:
    """The whole number that is written there, also below zero; None if it is no such number."""
    sign, inner = (-1, node.operand) if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else (1, node)
    value = inner.value if isinstance(inner, ast.Constant) else None
    return sign * value if isinstance(value, int) and not isinstance(value, bool) else None
