"""Lists that the steps of a training loop fill with a number each: element by element they are made one.

    losses.append(loss.item())       ->   losses[:] = accelerator.reduce(losses, reduction="mean")     after the loop
    history["loss"].append(loss.item())
    rows.append((loss.item(), accuracy))

Each process has as many of them. Where a number is the mean of a batch, the mean of those of all processes is that of
the batch that they share; and what has been made one before stays as it is, so that a list may go on over all epochs.
Sums of what is in such lists tell how many there are, and are left.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import rounds
from migrate.programs.shares.averages import Average, Joint
from migrate.programs.shares.read_elsewhere import read_elsewhere
from migrate.programs.shares.summed import is_summed
from migrate.programs.values.aliases import aliases
from migrate.programs.values.lists import appended, is_filled_only, is_met, nodes_of
from migrate.programs.values.made_of import entries
from migrate.programs.values.new_lists import is_empty_list
from migrate.programs.values.scalars import Scalar, Scalars

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact


class Collected:
    """The lists that one training loop fills."""

    def __init__(self, facts: Facts, loop: LoopFact) -> None:
        self._facts = facts
        self._loop = loop
        self._scalars = Scalars(facts, loop)
        self._appended = appended(facts, loop)

    def has(self, name: str) -> bool:
        """Whether the loop appends to what is called so."""
        return name in self._appended

    def average(self, name: str) -> Iterator[Average]:
        """What makes a list one after the loop; nothing where the mean does not say what its elements say."""
        added = self._appended[name]
        if self._is_given(name):
            return
        if self._are_losses(name, added):
            yield Average(self._loop.node, name, Joint.MEAN, is_tensor=True)
        elif all(map(self._are_means, added)) and self._holds_numbers(name) and not self._is_summed(name):
            is_shown = any(map(self._is_shown, self._met(name)))
            yield Average(self._loop.node, name, Joint.MEANS, is_tensor=False, shown_inside=is_shown)

    def _is_given(self, name: str) -> bool:
        """Whether the loop gives a name a list of many: `for log, value in zip(logs, values): log.append(value)`."""
        inside = set(rounds(self._loop.node))
        bound = self._facts.bindings_in(self._loop.unit)
        return any(binding.target == name and binding.statement in inside for binding in bound)

    def _are_losses(self, name: str, added: Sequence[ast.expr]) -> bool:
        """Whether a list holds the loss of each step as a tensor: their means say all."""
        if not is_filled_only(self._facts, self._loop, name, added):
            return False
        kept = {each: _of_graph(each) for each in added}
        for each, loss in kept.items():
            if not isinstance(loss, ast.Name) or not self._scalars.is_mean(loss):
                return False
            if each is loss and not self._scalars.is_loss(loss.id, loss):
                return False  # gradients may go back from the list
        return all(is_met(self._facts, self._loop, each) for each in added)

    def _are_means(self, value: ast.expr) -> bool:
        """The same of all parts of a tuple, a list or a dictionary that is written out."""
        return all(map(self._is_mean, entries(value)))

    def _is_mean(self, value: ast.expr) -> bool:
        """Whether a number of Python is appended that is a mean over the batch, in the same steps on all processes."""
        is_float = self._scalars.kind(value) is Scalar.FLOAT and self._scalars.is_mean(value)
        return is_float and is_met(self._facts, self._loop, value)

    def _holds_numbers(self, name: str) -> bool:
        """Whether all that may be under a name are lists that hold numbers from the first, and get numbers only."""
        facts = self._facts
        made = {value.origin for node in self._met(name) for value in facts.values(node)}
        if not made or not all(self._is_list(origin) for origin in made):
            return False
        filled = [use.node for use in facts.method_calls("append", "extend", "insert", "appendleft")]
        mine = (call for call in filled if made & {value.origin for value in facts.receiver(call)})
        return all(call.args and all(map(self._is_number, entries(call.args[-1]))) for call in mine)

    def _met(self, name: str) -> Iterator[ast.expr]:
        """Where the loop, and the functions that it calls, read what is called so."""
        for node in nodes_of(self._facts, self._loop, name):
            if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and ast.unparse(node) == name:
                yield node

    def _is_shown(self, node: ast.expr) -> bool:
        """Whether what is in a list is read, and not how many there are, where it is not filled."""
        match self._facts.tree(node).parents[node]:
            case ast.Attribute(attr="append" | "extend") | ast.Call(func=ast.Name("len")):
                return False
        return True

    def _is_list(self, made: ast.AST | None) -> bool:
        if isinstance(made, ast.List):
            return all(isinstance(each, ast.Constant) and isinstance(each.value, (int, float)) for each in made.elts)
        if not isinstance(made, ast.Call):
            return False
        if "collections.defaultdict" in self._facts.called(made):  # `defaultdict(list)`: its items
            return bool(made.args) and "builtins.list" in self._facts.names(made.args[0])
        return is_empty_list(self._facts, made)

    def _is_number(self, value: ast.expr) -> bool:
        return self._scalars.kind(value) in (Scalar.FLOAT, Scalar.WHOLE)

    def _is_summed(self, name: str) -> bool:
        """Whether code adds up what is in a list, other than to divide that by its length."""
        return is_summed(self._facts, self._readings(name))

    def _readings(self, name: str) -> Iterator[ast.expr]:
        inside = set(rounds(self._loop.node))
        own = [node for node in self._facts.own(self._loop.unit) if node not in inside]
        for each in (name, *aliases(self._facts, self._loop.node, {name})):
            yield from (n for n in own if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)) and _is_part(n, each))
            yield from read_elsewhere(self._facts, self._loop, each)


def _is_part(node: ast.expr, name: str) -> bool:
    """Whether a node reads a place, or what that is an item of."""
    text = ast.unparse(node)
    return text == name or name.startswith(f"{text}[")


def _of_graph(node: ast.expr) -> ast.expr:
    """`loss` in `loss.detach()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
        return node.func.value
    return node
