"""Calls that move or copy a file and give its path, which the program goes on with: `best = shutil.copy(last, folder)`.

    best = broadcast_object_list([shutil.copy(last, folder) if accelerator.is_main_process else None])[0]

A second process that does the same finds the file gone, or half written; all of them need the path.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.syntax import walk
from migrate.analysis.units import Function
from migrate.programs.values.outputs import Outputs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.conversion import Conversion
    from migrate.programs.output.voice import Voice

#: Methods of a path that give another one.
_OF_PATHS = frozenset("with_suffix with_name with_stem joinpath resolve absolute expanduser rename replace".split())
_DEEPEST = 6


def giving(conversion: Conversion, voice: Voice, covered: Collection[int]) -> Iterator[ast.Call]:
    """Where all processes come to such a call; `covered` is what only the main process comes to."""
    facts = conversion.facts
    for use in conversion.speaking_uses:
        call = use.node
        if id(call) in covered or not gives_path(facts, call) or voice.own.is_own(call):
            continue
        if isinstance(facts.tree(call).parents[call], ast.Expr):
            continue  # a statement of its own, of which nobody asks what it gives
        if not voice.is_left_to_one(call) and not voice.is_written_elsewhere(use.unit):
            yield call


def gives_path(facts: Facts, call: ast.Call) -> bool:
    """Whether a call moves or copies a file, and gives the path."""
    if facts.called(call) & output.GIVES_PATH:
        return True
    if not isinstance(call.func, ast.Attribute) or not facts.once(Outputs).may_move(call):
        return False
    return _is_path(facts, call.func.value, _DEEPEST)


def _is_path(facts: Facts, node: ast.expr, depth: int) -> bool:
    """Whether an expression is a path of `pathlib`: texts and tables have a `replace`, too."""
    if depth == 0:
        return False
    match node:
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return isinstance(right, ast.JoinedStr) or _is_text(right) or _is_path(facts, left, depth - 1)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _OF_PATHS:
            return _is_path(facts, inner, depth - 1)
        case ast.Call():
            return bool(facts.called(node) & output.PATH_CLASSES)
        case ast.Attribute(value=inner, attr="parent"):
            return _is_path(facts, inner, depth - 1)
        case ast.Name() | ast.Attribute():
            return _is_said(facts, node) or any(_is_path(facts, each, depth - 1) for each in _given(facts, node))
    return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _given(facts: Facts, node: ast.expr) -> Iterator[ast.expr]:
    """What a name stands for, as far as the code around it says."""
    yield from (value.origin for value in facts.values(node) if isinstance(value.origin, ast.Call))
    written = ast.unparse(node)
    for binding in facts.bindings_in(facts.unit(node)):
        if binding.target == written and isinstance(binding.statement, ast.Assign):
            yield binding.statement.value


def _is_said(facts: Facts, node: ast.expr) -> bool:
    """Whether a name is a parameter that its annotation calls a path."""
    unit = facts.unit(node)
    if not isinstance(node, ast.Name) or not isinstance(unit, Function) or node.id not in unit.parameter_names:
        return False
    said = (each.annotation for each in walk(unit.node.args) if isinstance(each, ast.arg) and each.arg == node.id)
    return any(annotation is not None and facts.names(annotation) & output.PATH_CLASSES for annotation in said)
