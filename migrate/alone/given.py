"""Ranks that one process gives itself, too: `if torch.cuda.is_available(): args.local_rank = 0`.

Whether such a rank is None goes by that test, and not by the number of processes.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_none
from migrate.programs.values.place import Quantity, number

if TYPE_CHECKING:
    from migrate.alone.world import World


def answer(world: World, node: ast.expr) -> str | None:
    """The test by which such a rank is there; None: that is not asked, or not known."""
    if not isinstance(node, ast.Compare) or not asks_for_none(node):
        return None
    given = numbering(world, node) if world.quantity(node.left) in (Quantity.RANK, Quantity.LOCAL_RANK) else []
    if len(given) != 1:
        return None
    test = ast.unparse(given[0].test)
    return test if isinstance(node.ops[0], ast.IsNot) else f"not ({test})"


def numbering(world: World, test: ast.Compare) -> list[ast.If]:
    """The branches, run by one process, too, that give a number to what a test asks for None."""
    text, tree = ast.unparse(test.left), world.facts.tree(test)
    return [
        above
        for node in tree.nodes.of(ast.Assign)
        if number(node.value) == 0 and text in map(ast.unparse, node.targets)
        if isinstance(above := tree.parents[node], ast.If) and node in above.body and world.truth(above.test) is None
    ]


def asks_for_none(test: ast.Compare) -> bool:
    """`rank is None`, `rank is not None`."""
    return len(test.ops) == 1 and isinstance(test.ops[0], (ast.Is, ast.IsNot)) and is_none(test.comparators[0])
