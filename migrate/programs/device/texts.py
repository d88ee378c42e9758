"""Texts that name a device, `device = "cuda"`, as against what else a text may be for."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.texts import text_of
from migrate.programs.device.the_cpu import only_cpu

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

#: Where `torch.load` puts what it reads.
_LOADED = "map_location"


def is_used_as_device(facts: Facts, statement: ast.Assign, target: str) -> bool:
    """Whether the text that a variable or an attribute is given is used as a device, under this name or another.

    In `x.to(it)`, `device=it`, `torch.device(it)`, or handed to a function. So it is in `map_location=it`; a text "cpu"
    that is only read there is where files are loaded to.
    """
    loading_too, handed_too = not only_cpu(facts, statement.value), not _asks_kind(facts, statement.value)
    waiting, seen = [_last_part(target)], set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for read, around in _readings(facts, statement, name):
            if isinstance(around, ast.keyword) and (around.arg == "device" or (loading_too and around.arg == _LOADED)):
                return True
            if isinstance(around, ast.Call) and read in around.args and _takes_device(facts, around, handed_too):
                return True
            if isinstance(around, ast.Assign) and read is around.value:
                waiting += [_last_part(ast.unparse(renamed)) for renamed in around.targets]
    return False


def _readings(facts: Facts, statement: ast.stmt, name: str) -> Iterator[tuple[ast.expr, ast.AST | None]]:
    """Where the file of a statement says a name, of a variable or of any object's attribute, and what stands around."""
    tree = facts.tree(statement)
    for node in tree.nodes:
        if isinstance(node, (ast.Name, ast.Attribute)) and _last_part(text_of(node)) == name:
            yield node, tree.parents.get(node)


def _takes_device(facts: Facts, call: ast.Call, handed_too: bool) -> bool:
    moves = isinstance(call.func, ast.Attribute) and call.func.attr == "to"
    return moves or "torch.device" in facts.called(call) or (handed_too and bool(facts.targets(call)))


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]


def _asks_kind(facts: Facts, value: ast.expr) -> bool:
    """`"cuda" if "cuda" in device else "cpu"`: a word that goes by the device, which another name has."""
    return isinstance(value, ast.IfExp) and any(
        isinstance(node, (ast.Name, ast.Attribute)) and facts.is_device(facts.values(node))
        for node in ast.walk(value.test)
    )
