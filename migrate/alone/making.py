"""The calls that make loaders and DistributedSamplers, and the expressions that a sampler may come from."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.scales import LOADERS
from migrate.analysis.known.distributed import SAMPLERS
from migrate.analysis.roles import Role, roles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.world import World

_DEEPEST = 4  # names, arguments and returns between a sampler and where it is made


class Making:
    """Where the loaders of a project, and what gives them their order, are made."""

    def __init__(self, world: World) -> None:
        self._world = world

    def loaders(self) -> Iterator[ast.Call]:
        """The calls that make a loader."""
        for module in self._world.modules:
            for node in self._world.facts.tree(module.tree).nodes:
                if isinstance(node, ast.Call) and self._world.facts.called(node) & LOADERS:
                    if id(node) not in self._world.dead:
                        yield node

    def only_call(self, node: ast.expr | None) -> ast.Call | None:
        """The one call that a value comes from."""
        found = self.alive(node) if node is not None else []
        return found[0] if len(found) == 1 and isinstance(found[0], ast.Call) else None

    def is_distributed(self, call: ast.Call) -> bool:
        """Whether a call makes a DistributedSampler, where one process runs it."""
        facts = self._world.facts
        made = facts.called(call)
        if made & SAMPLERS and not made <= SAMPLERS:  # `kind = DistributedSampler if distributed else RandomSampler`
            made = frozenset().union(*map(facts.names, self.alive(call.func)))
        return bool(made & SAMPLERS)

    def alive(self, node: ast.expr) -> list[ast.expr]:
        """The expressions that a sampler may come from where there is one process."""
        return [each for each in self.behind(node) if id(each) not in self._world.dead]

    def behind(self, node: ast.expr, depth: int = _DEEPEST) -> list[ast.expr]:
        """The expressions that a sampler may come from."""
        if isinstance(node, ast.IfExp):
            truth = self._world.truth(node.test)
            parts = [node.body, node.orelse] if truth is None else [node.body if truth else node.orelse]
            return [found for part in parts for found in self.behind(part, depth)]
        if isinstance(node, ast.Subscript):
            return self._under_key(node) or [node]
        if isinstance(node, (ast.Call, ast.Constant)) or depth == 0:
            return [node]
        given = self._world.sources.given(node)
        if not given.complete or not given.expressions:
            return [node]
        return [found for part in given.expressions for found in self.behind(part, depth - 1)]

    def _under_key(self, node: ast.Subscript) -> list[ast.expr]:
        """The calls that made what a dictionary has under a key, where that is a sampler: `samplers["train"]`."""
        values = self._world.facts.values(node)
        made = {self._world.facts.source(value.origin) for value in values if value.origin is not None}
        is_known = roles(values) == {Role.SAMPLER} and all(isinstance(each, ast.Call) for each in made)
        return [each for each in made if isinstance(each, ast.Call)] if is_known else []
