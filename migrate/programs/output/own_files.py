"""Files and folders that a program names by the rank of a process: each process writes its own, as it did."""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.syntax import argument_at, arguments
from migrate.programs.marker import NUMBERS, asks_accelerator
from migrate.programs.values.outputs import Outputs
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts

_DEEPEST = 4
#: The position of the path among the arguments of what writes.
_PATHS = {"torch.save": 1} | dict.fromkeys(
    [*output.OPENS, *output.FOLDERS, "numpy.save", "numpy.savez", "numpy.savetxt", "logging.FileHandler"], 0
)
_ON_PATHS = frozenset({"open", "mkdir", "write_text", "write_bytes"})


class OwnFiles:
    """Questions about the files of single processes."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._sources = facts.once(Sources)
        self._outputs = facts.once(Outputs)
        self._found: dict[ast.Call, bool] = {}

    def is_own(self, call: ast.Call) -> bool:
        """Whether a call makes, opens or fills a file of one process."""
        if not self._is_asked:
            return False
        if call not in self._found:
            self._found[call] = False  # while it is being asked
            self._found[call] = self._is_named_so(call) or self._is_filled(call)
        return self._found[call]

    @cached_property
    def _is_asked(self) -> bool:
        """Whether the program asks for a rank at all."""
        trees = (self._facts.tree_of(module) for module in self._facts.modules)
        return any(_is_rank(node) for tree in trees for node in tree.nodes)

    def _is_named_so(self, call: ast.Call) -> bool:
        path = self._path(call)
        return path is not None and self._goes_by_rank(path, _DEEPEST)

    def _path(self, call: ast.Call) -> ast.expr | None:
        if (path := self._outputs.log_file(call)) is not None:
            return path
        for position in (_PATHS[name] for name in self._facts.called(call) & _PATHS.keys()):
            return argument_at(call, position, *output.PATHS)
        is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _ON_PATHS
        return call.func.value if is_method and isinstance(call.func, ast.Attribute) else None

    def _is_filled(self, call: ast.Call) -> bool:
        """Whether a call is handed such a file, or is made on one."""
        files = arguments(call)
        values = [value for node in files for value in self._facts.values(node)] + [*self._facts.receiver(call)]
        made = {value.origin for value in values if isinstance(value.origin, ast.Call)}
        return any(self._outputs.opens(node) and self._is_named_so(node) for node in made)

    def _goes_by_rank(self, node: ast.expr, depth: int) -> bool:
        inner = [n for n in ast.walk(node) if isinstance(n, ast.expr)]
        if any(map(_is_rank, inner)):
            return True
        read = [n for n in inner if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Load)]
        given = (e for n in read if depth for e in self._sources.given(n).expressions if e is not node)
        return any(self._goes_by_rank(expression, depth - 1) for expression in given)


def _is_rank(node: ast.AST) -> bool:
    """`accelerator.process_index`."""
    return isinstance(node, ast.Attribute) and node.attr in NUMBERS and asks_accelerator(node)
