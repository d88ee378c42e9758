"""Files that objects keep open out of the accelerator's reach: all but the first process write into the null device.

    class Log:
        def __init__(self, path):
            self.file = open(path, "w")        # several processes would empty it, and write into each other's lines
        def add(self, text):
            self.file.write(text)

A file that is open for the time of one function may be one that all processes need afterwards: it is left to all.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk
from migrate.analysis.units import Function

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.output.voice import Voice


@dataclass(frozen=True, slots=True)
class KeptOpen:
    """Such files: the paths that they are opened by, and all code that opens them or writes into them."""

    paths: list[ast.expr]
    nodes: set[ast.AST]


def kept_open(facts: Facts, voice: Voice, units: Collection[Unit]) -> KeptOpen:
    """The files that objects keep open from when they are made on, and that these units only write into."""
    opened = [call for unit in units for call in _opened(facts, voice, unit)]
    classes = {getattr(facts.unit(call), "owner", None) for call in opened}
    writing = dict.fromkeys((*units, *(each for each in facts.functions if each.owner in classes))) if opened else {}
    nodes = (node for unit in writing for node in facts.own(unit).of(ast.Call))
    done = [node for node in nodes if node in opened or _is_into(facts, voice, node, opened)]
    statements = {facts.tree(node).statement(node) for node in done}
    nodes_of = (walk(each) for each in (*done, *(one for one in statements if isinstance(one, (ast.Assign, ast.Expr)))))
    return KeptOpen([call.args[0] for call in opened], {inner for nodes in nodes_of for inner in nodes})


def _opened(facts: Facts, voice: Voice, unit: Unit) -> Iterator[ast.Call]:
    if not isinstance(unit, Function) or unit.name != "__init__" or facts.file(unit.node).notebook is not None:
        return
    own = unit.positional[0].arg if unit.positional else ""
    for node in facts.own(unit).of(ast.Assign):
        target, call = node.targets[0], node.value
        is_own = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == own
        if is_own and isinstance(call, ast.Call) and call.args and not voice.own.is_own(call):
            if voice.outputs.diverted(call) is call.args[0] and not voice.is_asked(call):
                yield call


def _is_into(facts: Facts, voice: Voice, call: ast.Call, opened: Collection[ast.Call]) -> bool:
    made = {value.origin for value in facts.receiver(call)}
    return voice.outputs.is_to_file(call) and bool(made) and made <= {*opened}


def only_opens(facts: Facts, voice: Voice, statement: ast.stmt, covered: Collection[ast.AST]) -> bool:
    """Whether a statement is `log = Log(path)`, which writes nothing but what is `covered`."""
    made = statement.value if isinstance(statement, ast.Assign) else None
    found = facts.targets(made) if isinstance(made, ast.Call) else ()
    return bool(found) and all(
        target.name == "__init__" and not voice.speaks_unasked(target, covered=covered) for target in found
    )
