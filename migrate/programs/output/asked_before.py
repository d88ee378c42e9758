"""Folders that a program makes where none was, and which it leaves, or asks its user about, where there is one.

    if os.path.exists(path):
        raise FileExistsError(path)
    os.makedirs(path)

A process that comes late would find the folder that another one has made. So all have asked before one makes it, and
before one makes a folder that all fill.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.output.filled_anew import made_and_filled
from migrate.programs.output.folders import asked_for, made_under
from migrate.programs.output.voice import Voice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Tree
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion

#: What ends a program, or waits for its user.
_ENDS = frozenset("sys.exit builtins.exit builtins.quit os._exit builtins.input".split())


def asked_before(conversion: Conversion) -> Iterator[ast.stmt]:
    """The statements that make such folders, before which all processes must have asked for them."""
    voice = Voice(conversion)
    for unit in conversion.speaking_units:
        for node in conversion.facts.own(unit) if conversion.access.has(unit) else ():
            if not isinstance(node, ast.If) or voice.is_of_one(node):
                continue
            makes = next(_making(conversion.facts, unit, node), None) or made_and_filled(conversion.facts, node)
            if makes is not None and conversion.has_accelerator_at(makes):
                yield makes


def _making(facts: Facts, unit: Unit, branch: ast.If) -> Iterator[ast.stmt]:
    """Where a folder is made below a branch that ends the program if it is there, or in its other part."""
    path, there, missing = asked_for(facts, branch)
    if path is None or not any(_ends(facts, node) for statement in there for node in ast.walk(statement)):
        return
    tree = facts.tree(branch)
    block = tree.block(branch)
    below = block[block.index(branch) + 1 :]
    for node in facts.own(unit):
        if isinstance(node, ast.Call) and made_under(facts, node) == path:
            if (held := _held(tree, node, (missing, below))) is not None:
                yield held


def _held(tree: Tree, node: ast.AST, blocks: Sequence[Sequence[ast.stmt]]) -> ast.stmt | None:
    """The statement of one of some blocks that holds a node."""
    found = (tree.in_block(node, list(block)) for block in blocks)
    return next((statement for statement in found if statement is not None), None)


def _ends(facts: Facts, node: ast.AST) -> bool:
    return isinstance(node, ast.Return) or stops(facts, node)


def stops(facts: Facts, node: ast.AST) -> bool:
    """Whether a program ends here, or waits for its user."""
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and bool(facts.called(node) & _ENDS))
