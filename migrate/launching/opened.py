"""What one process has opened to write with, and no other one can use.

log = open("log.csv", "w")    is an open file, as is what writes into one: csv.writer(log)
writer = SummaryWriter()      has files and a thread, which do not travel
wandb.init(project="mine")    is known to this process; another one has begun nothing
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.launching.names import bound, root_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

_WRITING = frozenset({"csv.writer", "csv.DictWriter"})
_BEGUN = frozenset({"init", "start_run"})
_SESSIONS = frozenset({"wandb", "mlflow", "swanlab", "trackio"})  # packages that log to what the process has begun

Found = tuple[ast.stmt, str]


def opened(nodes: Sequence[ast.stmt], names: Collection[str], roles: Callable[[str], frozenset[Role]]) -> Found | None:
    """The first of some names to which some code gives such a thing, with the last statement that does."""
    given = {name: node for node in nodes for name in bound([node])}
    found = (name for name in sorted(given.keys() & names) if _is_open(given[name], name, roles))
    return next(((given[name], name) for name in found), None)


def begun(nodes: Sequence[ast.stmt], names: Collection[str], modules: Mapping[str, str]) -> Found | None:
    """The first of some names that is a package which some code has begin to log, with the statement that does."""
    for node in nodes:
        calls = (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))
        roots = {
            root_of(call.func) for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr in _BEGUN
        }
        for name in sorted(roots & {*names}, key=str):
            if name is not None and modules.get(name) in _SESSIONS:
                return node, name
    return None


def _is_open(node: ast.stmt, name: str, roles: Callable[[str], frozenset[Role]]) -> bool:
    inner = [each for each in ast.walk(node) if isinstance(each, ast.Assign) and name in bound([each])]
    return Role.WRITER in roles(name) or any(_opens(each.value) for each in inner)


def _opens(value: ast.expr) -> bool:
    """`open(path)`, `path.open()`, `gzip.open(path)`, `csv.writer(file)`."""
    path = ast.unparse(value.func) if isinstance(value, ast.Call) else ""
    return path.rpartition(".")[2] == "open" or path in _WRITING
