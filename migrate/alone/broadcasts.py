"""What the main process computes and sends to the others: a decision to stop, a name, a seed.

    dist.broadcast(stop, src=0)                  ->   broadcast(stop)
    dist.broadcast_object_list(names, src=0)     ->   broadcast_object_list(names)

What only the main process has computed is not known to the others without it, so it stays, and is the library's. So it
does where only several processes would come to it. Parameters are no such thing: they are the same anyway.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.calls import TELLING
from migrate.analysis.syntax import argument_at
from migrate.programs.marker import ACCELERATOR

if TYPE_CHECKING:
    from migrate.alone.world import World

_STATE = ("parameters", "buffers", "named_parameters", "named_buffers", "state_dict")
_OTHERS = ("group", "async_op", "group_src")


class Broadcasts:
    """The calls that send what the main process has."""

    def __init__(self, world: World) -> None:
        self._world = world

    def holds(self, call: ast.Call) -> bool:
        """Whether a call sends something that a name has from the main process to all others."""
        return self._sent(call) is not None

    def instead(self, statement: ast.stmt) -> str | None:
        """What the statement of such a call becomes."""
        call = statement.value if isinstance(statement, ast.Expr) else None
        sent = self._sent(call) if isinstance(call, ast.Call) else None
        return None if sent is None else f"{ACCELERATOR}.{sent}"

    def _sent(self, call: ast.Call) -> str | None:
        names = {name.rpartition(".")[2] for name in self._world.facts.called(call) & TELLING}
        if len(names) != 1 or not isinstance(self._world.facts.tree(call).parents[call], ast.Expr):
            return None
        given = argument_at(call, 0, "tensor") or argument_at(call, 0, "object_list")
        source = argument_at(call, 1, "src")
        is_main = source is None or (isinstance(source, ast.Constant) and source.value == 0)
        is_whole = len(call.args) <= 2 and not any(keyword.arg in _OTHERS for keyword in call.keywords)
        if not isinstance(given, (ast.Name, ast.Attribute)) or not is_main or not is_whole:
            return None
        return None if self.is_state(call) else f"{names.pop()}({ast.unparse(given)})"

    def is_state(self, call: ast.Call) -> bool:
        """Whether parameters are sent: these are the same on all processes anyway."""
        given = argument_at(call, 0, "tensor")
        if given is None:
            return False
        name = ast.unparse(given).partition(".")[0]
        loops = (above for above in self._world.facts.tree(call).up(call) if isinstance(above, ast.For))
        around = next((loop for loop in loops if name in ast.unparse(loop.target)), None)
        return around is not None and any(
            isinstance(n, ast.Attribute) and n.attr in _STATE for n in ast.walk(around.iter)
        )
