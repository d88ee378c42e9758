"""How often code runs: once, per epoch, per batch, through the functions that call it.

A function that is called from several places may run at several rates; one that nobody is seen to call, or that is
handed about as a value, at rates that are not known.
"""

from __future__ import annotations

import ast
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Loop
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops


class Rate(str, Enum):
    """How often something runs."""

    ONCE = "once"
    EPOCH = "per epoch"
    BATCH = "per batch"
    EVALUATED_BATCH = "per batch of an evaluation"
    REPEATED = "in another loop"
    UNKNOWN = "not known"


class Frequency:
    """The rates of a program's code."""

    def __init__(self, facts: Facts, loops: Loops) -> None:
        self._facts = facts
        self._loops = loops

    def of(self, node: ast.AST) -> frozenset[Rate]:
        """The rates at which a statement or expression is reached."""
        return self._rates(node, self._facts.unit(node), frozenset(), {})

    def _rates(
        self, node: ast.AST, unit: Unit, seen: frozenset[Unit], known: dict[ast.AST, frozenset[Rate]]
    ) -> frozenset[Rate]:
        """The same, `known` for calls that several ways lead from."""
        if node not in known:
            known[node] = frozenset(self._looked_at(node, unit, seen, known))
        return known[node]

    def _looked_at(
        self, node: ast.AST, unit: Unit, seen: frozenset[Unit], known: dict[ast.AST, frozenset[Rate]]
    ) -> Iterator[Rate]:
        """Those by the loops around it in its function; where there is none that counts, by its callers."""
        around = [self._of_loop(loop) for loop in self._facts.tree(node).loops(node)]
        fastest = min(around, key=_ORDER.index, default=Rate.ONCE)
        if fastest in _BATCHES or not isinstance(unit, Function):
            yield fastest
            return
        if unit in seen:
            return
        if not self._facts.callers_known(unit) and not unit.calls:
            yield Rate.UNKNOWN
            return
        if not self._facts.callers_known(unit):
            yield Rate.UNKNOWN
        for call in self._facts.callers(unit):
            if call.handed is not None and call.handed.often:
                yield Rate.UNKNOWN
            for rate in self._rates(call.node, call.caller, seen | {unit}, known):
                yield min(rate, fastest, key=_ORDER.index)

    def _of_loop(self, loop: Loop) -> Rate:
        if loop in self._training or any(above in self._training for above in self._facts.tree(loop).loops(loop)):
            return Rate.BATCH
        if loop in self._evaluating:
            return Rate.EVALUATED_BATCH
        if self._loops.trains(loop):
            return Rate.EPOCH
        return Rate.REPEATED

    @cached_property
    def _training(self) -> set[ast.AST]:
        """The loops over batches: a loop over the parts of a batch leaves the step to the loop around it, or steps."""
        found: set[ast.AST] = set()
        for use in self._loops.backwards:
            for loop in self._loops.innermost(use.node, use.unit):
                around = (loop, *self._loops.around(loop, self._facts.unit(loop)))
                found.add(next((one for one in around if self._is_whole(one)), loop))
                found.add(self._loops.taking(loop))
        return found

    def _is_whole(self, loop: Loop) -> bool:
        return bool(self._loops.loaders(loop)) or bool(self._loops.updates.reached(loop))

    @cached_property
    def _evaluating(self) -> set[ast.AST]:
        return {loop.node for loop in self._loops.evaluation}


#: The most frequent first: what is inside of two loops runs as often as the inner one says. A loop that neither trains
#: nor evaluates may run any number of times, so it says more than "once" and less than the others.
_ORDER = (Rate.BATCH, Rate.EVALUATED_BATCH, Rate.UNKNOWN, Rate.EPOCH, Rate.REPEATED, Rate.ONCE)
_BATCHES = frozenset({Rate.BATCH, Rate.EVALUATED_BATCH})
