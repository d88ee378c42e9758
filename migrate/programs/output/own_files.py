"""Files and folders that each process writes for itself, as it did.

A program names them by the rank of a process, or makes a folder that goes when it is done with it: no other process
could find the way into that (`with TemporaryDirectory() as folder:`).
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.syntax import argument_at, arguments
from migrate.programs.marker import NUMBERS, asks_accelerator
from migrate.programs.output.written_paths import written_path
from migrate.programs.values.outputs import Outputs
from migrate.programs.values.scopes import bound_in_scope
from migrate.programs.values.sources import Given, Sources

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts

_DEEPEST = 4
#: The position of the path among the arguments of what writes.
_PATHS = {"torch.save": 1} | dict.fromkeys(
    [*output.OPENS, *output.FOLDERS, "numpy.save", "numpy.savez", "numpy.savetxt", "logging.FileHandler"], 0
)
_ON_PATHS = frozenset({"open", "mkdir", "write_text", "write_bytes"})
#: What is made for the process alone, and goes with what made it.
_TEMPORARY = frozenset(
    f"tempfile.{name}" for name in "TemporaryDirectory TemporaryFile NamedTemporaryFile SpooledTemporaryFile".split()
)


class OwnFiles:
    """Questions about the files of single processes."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._sources = facts.once(Sources)
        self._outputs = facts.once(Outputs)
        self._found: dict[ast.Call, bool] = {}

    def is_own(self, call: ast.Call) -> bool:
        """Whether a call makes, opens or fills a file of one process."""
        if self.is_temporary(call):
            return True
        if not self._is_asked:
            return False
        if call not in self._found:
            self._found[call] = False  # while it is being asked
            self._found[call] = self._is_named_so(call) or self._is_filled(call)
        return self._found[call]

    def is_temporary(self, call: ast.Call) -> bool:
        """Whether a call writes into a file or a folder that goes with the process that made it."""
        path = self._path(call) if self._makes_temporary else None
        return path is not None and self._is_below_temporary(path, _DEEPEST)

    def is_handed_temporary(self, call: ast.Call) -> bool:
        """Whether a call hands on such a file or folder: what it enters writes for this process."""
        return self._makes_temporary and any(self._is_below_temporary(each, _DEEPEST) for each in arguments(call))

    @cached_property
    def _makes_temporary(self) -> bool:
        return any(self._facts.called(use.node) & _TEMPORARY for use in self._facts.calls)

    def _is_below_temporary(self, path: ast.expr, depth: int) -> bool:
        """Whether a path begins with such a folder, whoever hands it over."""
        read = [n for n in ast.walk(path) if isinstance(n, (ast.Name, ast.Attribute, ast.Call))]
        if any(isinstance(node, ast.Call) and self._facts.called(node) & _TEMPORARY for node in read):
            return True
        for node in (n for n in read if depth and not isinstance(n, ast.Call)):
            given = self._entered(node) or self._sources.given(node)
            if given.complete and given.expressions:
                if all(self._is_below_temporary(each, depth - 1) for each in given.expressions if each is not node):
                    return True
        return False

    def _entered(self, node: ast.expr) -> Given | None:
        """What is entered by `with TemporaryDirectory() as folder:`; complete where nothing else gives it a value."""
        bindings = bound_in_scope(self._facts, node) if isinstance(node, ast.Name) else ()
        entered = [_context(binding.statement, binding.target) for binding in bindings]
        found = tuple(each for each in entered if each is not None)
        return Given(found, complete=None not in entered) if found else None

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
        if isinstance(call.func, ast.Attribute) and call.func.attr in _ON_PATHS:
            return call.func.value
        return written_path(self._facts, call)

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


def _context(statement: ast.stmt, name: str) -> ast.expr | None:
    """What a `with` statement enters under a name."""
    items = statement.items if isinstance(statement, ast.With) else ()
    named = (item for item in items if isinstance(item.optional_vars, ast.Name) and item.optional_vars.id == name)
    return next((item.context_expr for item in named), None)


def _is_rank(node: ast.AST) -> bool:
    """`accelerator.process_index`."""
    return isinstance(node, ast.Attribute) and node.attr in NUMBERS and asks_accelerator(node)
