"""Models and losses that go on asking the other processes, and have no `__init__` that could keep the accelerator.

    class CenterLoss(nn.Module):          class CenterLoss(nn.Module):
        def forward(self, x):       ->        def __init__(self):
            center = x.mean(0)                    super().__init__()

They get one, as PyTorch's own would do the same.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import is_docstring
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.sums import Sums
    from migrate.alone.world import World
    from migrate.analysis.units import Unit

CONSTRUCTOR = "def __init__(self):\n    super().__init__()"
_MODULES = frozenset({"torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module"})
_DEEPEST = 3  # calls between a method and the sum


def wanting(world: World, sums: Sums) -> Iterator[ast.stmt]:
    """The first statements of classes in whose place an `__init__` has to stand above them."""
    staying = (call for call in sums.insides.calls if sums.stays(call))
    found = {cls for call in staying for cls in _owners(world, world.facts.unit(call), _DEEPEST)}
    for cls in sorted(found, key=lambda each: each.node.lineno):
        if cls.module in world.modules and _is_plain(world, cls):
            body = cls.node.body
            yield body[int(is_docstring(body[0]) and len(body) > 1)]


def _owners(world: World, unit: Unit, depth: int) -> Iterator[Class]:
    """The classes of which a method is a unit, or calls it."""
    if not isinstance(unit, Function) or depth == 0:
        return
    if unit.owner is not None:
        yield unit.owner
        return
    for call in world.facts.callers(unit):
        yield from _owners(world, call.caller, depth - 1)


def _is_plain(world: World, cls: Class) -> bool:
    """`class Loss(nn.Module):`, which has no `__init__` but that of PyTorch."""
    bases = cls.node.bases
    is_alone = len(bases) == 1 and not cls.node.keywords and "__init__" not in cls.names
    return is_alone and bool(world.facts.names(bases[0]) & _MODULES)
