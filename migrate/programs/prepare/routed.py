"""What a model's forward goes by that is in the batch: experts to which no row is sent.

    rows = torch.where(chosen == i)[0]
    if rows.numel() > 0:
        out[rows] = expert(x[rows])

Which experts are left out is another matter on each process.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.syntax import arguments, writes
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

_STEPS_BACK = 4  # from a size to what chose the rows
_ASKING = frozenset("any all item".split())
_REDUCING = frozenset("mean sum max min norm std var".split())  # to one number, where no dimension is named
_SIZES = frozenset("numel nelement size".split())
_CHOOSING = frozenset("nonzero where argwhere masked_select unique".split())


def asks_batch(facts: Facts, test: ast.expr) -> bool:
    """Whether a test in a model is about what a tensor holds, or about how many rows were chosen by that."""
    for node in ast.walk(test):
        if isinstance(node, ast.Call) and not facts.targets(node):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            if name in _ASKING and isinstance(node.func, ast.Attribute):
                return True
            if name in _REDUCING and isinstance(node.func, ast.Attribute) and not arguments(node):
                return True
            if (name in _SIZES or name == "len") and any(_is_chosen(facts, each) for each in _of(node)):
                return True
        elif isinstance(node, ast.Attribute) and node.attr == "shape" and _is_chosen(facts, node.value):
            return True
    return False


def _of(call: ast.Call) -> list[ast.expr]:
    """What a function or a method is about."""
    return [*arguments(call), *([call.func.value] if isinstance(call.func, ast.Attribute) else [])]


def _is_chosen(facts: Facts, node: ast.expr, depth: int = _STEPS_BACK) -> bool:
    """Whether how many rows something has goes by what a tensor holds: `torch.where(mask)[0]`, `x[mask]`."""
    if not depth:
        return False
    if isinstance(node, ast.Name):
        return any(_is_chosen(facts, given, depth - 1) for given in _given(facts, node))
    if isinstance(node, ast.IfExp):
        return _is_chosen(facts, node.body, depth) or _is_chosen(facts, node.orelse, depth)
    if isinstance(node, ast.Subscript):
        return _is_mask(facts, node.slice) or _is_chosen(facts, node.value, depth)
    if not isinstance(node, ast.Call):
        return False
    names = {name.rpartition(".")[2] for name in called_by_name(facts, node)}
    if isinstance(node.func, ast.Attribute):
        names.add(node.func.attr)
    if "where" in names and len(node.args) > 1:  # chooses one of two for each place
        return False
    return bool(names & _CHOOSING) or any(_is_chosen(facts, each, depth) for each in _of(node))


def _is_mask(facts: Facts, index: ast.expr) -> bool:
    given = _given(facts, index) if isinstance(index, ast.Name) else [index]
    return any(isinstance(each, ast.Compare) for each in given)


def _given(facts: Facts, name: ast.Name) -> Iterator[ast.expr]:
    """What a name is given in its function, alone or as one of several."""
    for node in facts.own(facts.unit(name)):
        if isinstance(node, ast.Assign) and any(name.id in writes(target) for target in node.targets):
            yield node.value
