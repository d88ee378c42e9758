"""What is of one process, and cannot be sent to another one: open files, and what writes into one.

log = open("log.csv", "w")          writer = csv.writer(log)          writer = SummaryWriter()
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.launching.names import bound

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

_WRITING = frozenset({"csv.writer", "csv.DictWriter"})


def unsent(
    nodes: Sequence[ast.stmt], names: Collection[str], roles: Callable[[str], frozenset[Role]]
) -> tuple[ast.stmt, str] | None:
    """The first of some names to which some code gives such a thing, with the last statement that does."""
    given = {name: node for node in nodes for name in bound([node])}
    return next(
        ((given[name], name) for name in sorted(given.keys() & names) if _is_open(given[name], name, roles)), None
    )


def _is_open(node: ast.stmt, name: str, roles: Callable[[str], frozenset[Role]]) -> bool:
    inner = [each for each in ast.walk(node) if isinstance(each, ast.Assign) and name in bound([each])]
    return Role.WRITER in roles(name) or any(_opens(each.value) for each in inner)


def _opens(value: ast.expr) -> bool:
    """`open(path)`, `path.open()`, `gzip.open(path)`, `csv.writer(file)`."""
    path = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    return path.rpartition(".")[2] == "open" or path in _WRITING
