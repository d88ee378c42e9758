"""Loops that train and evaluate by turns on a dictionary of loaders: `for x, y in loaders[phase]`.

Only the loader that is trained on is prepared. The others stay whole, so that every process evaluates everything and
what is added up then is that of all samples; what training adds up is joined where the phase is training.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.state import ELEMENT
from migrate.programs.training.pairs import container
from migrate.programs.training.phases import Phase, Phases

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.training.phases import Flag


@dataclass(frozen=True, slots=True)
class Turning:
    """A loop over one of the loaders of a dictionary, chosen by the phase."""

    loop: LoopFact
    origin: ast.AST  # where the loader that is trained on is made
    held: ast.AST  # what makes the dictionary
    key: str  # of the loader that is trained on
    test: ast.expr  # holds where it trains
    others: frozenset[ast.AST]  # where the other loaders are made

    @property
    def trains(self) -> str:
        """The test that holds where it trains, as it is written."""
        return ast.unparse(self.test)

    @property
    def trained_on(self) -> str:
        """How the loader is named that is trained on."""
        return repr(self.key)

    def asks(self, node: ast.Subscript) -> bool:
        """Whether an item is the one that the loop runs over."""
        return any(node is inner for inner in ast.walk(self.loop.node))


def turnings(facts: Facts, training: Iterable[LoopFact]) -> tuple[Turning, ...]:
    """The loops by turns among the training loops; none if another loop trains on one of their dictionaries."""
    training = list(training)
    found = [made for loop in training if (made := _turning(facts, loop)) is not None]
    mine = {made.origin for made in found}
    if any(loop.loaders & mine and loop not in [made.loop for made in found] for loop in training):
        return ()
    return tuple(found)


def _turning(facts: Facts, loop: LoopFact) -> Turning | None:
    found = Phases(facts).of(loop)
    flag = found.flag
    if flag is None or found.phase is not Phase.MIXED or not (flag.complete and flag.holds_means_training):
        return None
    if len(flag.trains) != 1 or not isinstance(flag.trains[0], str):
        return None
    item = _item(loop, flag.subject)
    held = container(facts, item.value) if item is not None else None
    return None if held is None else _among(facts, loop, held, flag)


def _among(facts: Facts, loop: LoopFact, held: ast.AST, flag: Flag) -> Turning | None:
    """`{"train": train_loader, "val": val_loader}`: a loader of its own under each key."""
    key, holding = str(flag.trains[0]), facts.holding(held)
    by_key = {name: origins(values, Role.LOADER) for name, values in holding.items()}
    source = facts.source(held)
    if isinstance(source, ast.Dict) and any(not isinstance(each, ast.Constant) for each in source.keys):
        return None
    if ELEMENT in holding or len(by_key.get(key, ())) != 1:
        return None
    (origin,) = by_key[key]
    others = {made for name, mine in by_key.items() if name != key for made in mine}
    if origin in others or set(loop.loaders) != {origin, *others}:
        return None
    return Turning(loop, origin, held, key, flag.test, frozenset(others))


def _item(loop: LoopFact, subject: ast.expr) -> ast.Subscript | None:
    """`loaders[phase]` in what a loop runs over."""
    if not isinstance(loop.node, (ast.For, ast.AsyncFor)):
        return None
    items = [node for node in ast.walk(loop.node.iter) if isinstance(node, ast.Subscript)]
    asked = [node for node in items if ast.unparse(node.slice) == ast.unparse(subject)]
    return asked[0] if len(asked) == len(items) == 1 else None


def misread(facts: Facts, turning: Turning, until: int) -> ast.AST | None:
    """A place that takes the loaders out in another way than the loop; the others by name, or any until a line, may."""
    for module in facts.modules:
        tree = facts.tree_of(module)
        for node in tree.nodes:
            if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
                continue
            if turning.held not in {value.origin for value in facts.values(node)}:
                continue
            parent = tree.parents[node]
            is_early = node.lineno <= until and facts.unit(node) is facts.unit(turning.held)
            if isinstance(parent, ast.Attribute) and not is_early:
                return parent
            if isinstance(parent, (ast.For, ast.AsyncFor, ast.comprehension)) and not is_early:
                return node
            if isinstance(parent, ast.Subscript) and not (
                is_early or turning.asks(parent) or _other(turning, parent) or _is_put(facts, turning, parent)
            ):
                above = tree.parents[parent]
                if not (isinstance(above, ast.Attribute) and above.attr == "dataset"):  # the same for all of them
                    return parent
    return None


def _other(turning: Turning, item: ast.Subscript) -> bool:
    return isinstance(item.slice, ast.Constant) and item.slice.value != turning.key


def _is_put(facts: Facts, turning: Turning, item: ast.Subscript) -> bool:
    """Whether the loaders are put into the dictionary there."""
    statement = facts.tree(item).parents[item]
    made = origins(facts.values(statement.value), Role.LOADER) if isinstance(statement, ast.Assign) else set()
    return isinstance(item.ctx, ast.Store) and bool(made & {turning.origin, *turning.others})
