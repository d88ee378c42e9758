"""What a model, or a loss, collects from all processes in each step of its training: the keys of all batches.

    parts = [torch.zeros_like(x) for _ in range(world_size)]
    dist.all_gather(parts, x)                                  ->   x = accelerator.gather(x.detach())
    x = torch.cat(parts)

What is gathered carries no gradient, on one process neither. A list of which single elements are asked for, or set, as
a process does with its own part to keep the gradient, is another thing.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.calls import GATHERS, TENSOR_GATHERS, is_of_some
from migrate.alone.gatherings import filled_above
from migrate.alone.orders import is_same_between
from migrate.analysis.syntax import argument_at, is_stored
from migrate.programs.marker import ACCELERATOR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.alone.pen import Pen
    from migrate.alone.world import World

_JOINING = frozenset({"torch.cat", "torch.concat", "torch.concatenate"})


@dataclass(frozen=True, slots=True)
class Collected:
    """A list that is made, filled, and joined."""

    made: ast.stmt
    joined: ast.Call
    own: ast.expr  # what this process puts in


class Collecting:
    """The gathered tensors among the calls that stand in models and losses."""

    def __init__(self, world: World, calls: Iterable[ast.Call]) -> None:
        self._world = world
        self._calls = calls

    @cached_property
    def found(self) -> dict[ast.Call, Collected]:
        """The calls, each with what it belongs to."""
        known = ((call, self._collected(call)) for call in self._calls if self._world.facts.called(call) & GATHERS)
        return {call: collected for call, collected in known if collected is not None}

    def goes(self, statement: ast.stmt) -> bool:
        """Whether a statement makes such a list, or fills it."""
        is_filling = isinstance(statement, ast.Expr) and statement.value in self.found
        return is_filling or any(each.made is statement for each in self.found.values())

    def rewrite(self, pen: Pen, node: ast.expr) -> list[ast.AST] | None:
        """`torch.cat(parts)` is what the accelerator gathers."""
        own = next((each.own for each in self.found.values() if each.joined is node), None)
        if own is None:
            return None
        pen.rewrite(node, f"{ACCELERATOR}.gather({ast.unparse(own)}.detach())")
        return []

    def _collected(self, call: ast.Call) -> Collected | None:
        facts = self._world.facts
        tree, names, own = facts.tree(call), facts.called(call), argument_at(call, 1, "tensor")
        gathered = argument_at(call, 0, "tensor_list")
        if not isinstance(gathered, ast.Name) or own is None or not names <= TENSOR_GATHERS or is_of_some(call):
            return None
        function, made = tree.function(call), filled_above(tree, gathered)
        named = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == gathered.id]
        again = [tree.statement(n) for n in named if is_stored(n) and n.lineno > call.lineno]
        last = min((statement.end_lineno or 0 for statement in again), default=None)
        reads = [n for n in named if not is_stored(n) and n is not gathered and (last is None or n.lineno <= last)]
        later = [tree.parents[read] for read in reads]
        if made is None or len(later) != 1 or not isinstance(joined := later[0], ast.Call):
            return None
        is_joined = bool(facts.called(joined) & _JOINING) and _is_by_rows(joined) and joined.lineno > call.lineno
        is_plain = isinstance(tree.parents[call], ast.Expr) and isinstance(own, (ast.Name, ast.Attribute, ast.Call))
        is_same = is_same_between(function, own, call.lineno, joined.lineno)
        return Collected(made, joined, own) if is_joined and is_plain and is_same else None


def _is_by_rows(joined: ast.Call) -> bool:
    """`torch.cat(parts)`, `torch.cat(parts, dim=0)`."""
    dim = argument_at(joined, 1, "dim") or argument_at(joined, 1, "axis")
    return len(joined.args) + len(joined.keywords) <= 2 and (dim is None or ast.unparse(dim) == "0")
