"""What an evaluation computes of several rows of a batch before the model sees it: `x - x.min()`, `x.flip(0)`, `x[2:]`.

A share of the batch has another minimum, and its rows stand in other places: it would be other numbers.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.tensors import FOLDING, FOLDING_WITHOUT_DIM
from migrate.analysis.roles import FROM_LOADER, ROWS, Role, roles
from migrate.analysis.syntax import arguments, walk
from migrate.programs.values.place import number
from migrate.programs.values.results import is_integer, may_give_one

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts

#: What a share of the batch is meant to have of its own, sizes, and what only hands out what is there.
_OF_ITS_OWN = frozenset("size shape numel dim ndim nelement __len__ item tolist numpy data_ptr".split())
_FOLDING = (FOLDING | FOLDING_WITHOUT_DIM) - _OF_ITS_OWN
#: Give one tensor, whatever they are given: one of its numbered elements is a row.
_ONE = frozenset(
    """to cuda cpu float double half detach clone contiguous view reshape flatten squeeze unsqueeze permute transpose
    softmax log_softmax sigmoid tanh relu exp log abs clamp argmax argmin numpy""".split()
)
#: What a tensor has and a tuple has not.
_OF_TENSORS = _ONE | _OF_ITS_OWN - {"__len__"}
#: Compute over a dimension, or put its elements elsewhere.
_OVER_DIM = frozenset("flip sort argsort roll softmax log_softmax normalize cumsum cumprod unique topk".split())
_JOINING = frozenset("torch.cat torch.concat torch.concatenate torch.vstack torch.stack".split())


def mixes_rows(facts: Facts, before: Iterable[ast.stmt], forward: ast.stmt) -> str | None:
    """Why what a model is given of a row goes by others of its batch; None if nothing is seen."""
    for node in (node for part in (*before, *_given(facts, forward)) for node in ast.walk(part)):
        if isinstance(node, ast.Call) and (_folds(facts, node) or _joins(facts, node)):
            return f"`{ast.unparse(node)}` is computed from all rows of the batch (line {node.lineno})"
        if isinstance(node, ast.Subscript) and _chooses(facts, node):
            return f"`{ast.unparse(node)}` chooses rows of the batch (line {node.lineno})"
    return None


def takes_rows(facts: Facts, node: ast.AST) -> bool:
    """Whether some rows of a model's result are taken, or all in another order: `model(x)[0]`, `model(x).flip(0)`."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Attribute) and node.func.attr in _OVER_DIM and _folds(facts, node)
    return isinstance(node, ast.Subscript) and _chooses(facts, node)


def _given(facts: Facts, forward: ast.stmt) -> list[ast.expr]:
    """What a statement gives to models."""
    calls = (node for node in ast.walk(forward) if isinstance(node, ast.Call))
    return [each for call in calls if Role.MODEL in roles(facts.values(call.func)) for each in arguments(call)]


def _folds(facts: Facts, call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    dims = _dims(call)
    if name not in _FOLDING | _OVER_DIM or (dims and 0 not in dims):
        return False
    if name in _FOLDING and not dims:
        return Role.STATISTIC in roles(facts.values(call))
    taken = [call.func.value, *call.args] if isinstance(call.func, ast.Attribute) else call.args
    return any(roles(facts.values(each)) & FROM_LOADER for each in taken)


def _dims(call: ast.Call) -> list[int]:
    """The dimensions that a call names: `x.mean(0)`, `x.flip([0, 1])`, `torch.sum(x, dim=1)`."""
    given = [k.value for k in call.keywords if k.arg in ("dim", "dims", "axis")] or call.args
    parts = [part for each in given for part in (each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each])]
    return [dim for part in parts if isinstance(dim := number(part), int)]


def _joins(facts: Facts, call: ast.Call) -> bool:
    """`torch.cat([x, mirrored])`: the rows of both halves of a share lie elsewhere than those of the whole batch."""
    listed = call.args[0] if call.args else None
    if not facts.called(call) & _JOINING or not isinstance(listed, (ast.List, ast.Tuple)):
        return False
    dims = [*call.args[1:], *(k.value for k in call.keywords if k.arg in ("dim", "axis"))]
    is_first = not dims or number(dims[0]) == 0
    return is_first and sum(bool(roles(facts.values(each)) & ROWS) for each in listed.elts) > 1


def _chooses(facts: Facts, node: ast.Subscript) -> bool:
    """`x[2:]`, `x[order]`, `x[0]`: rows of a tensor, in whatever order; `batch[1:]` of a tuple is no such thing."""
    first = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    if not roles(facts.values(node.value)) & ROWS:
        return False
    if isinstance(first, ast.Slice):
        return isinstance(node.slice, ast.Tuple) and any((first.lower, first.upper, first.step))
    if is_integer(first):
        return _is_tensor(facts, node.value)
    inner = (each for each in ast.walk(first) if isinstance(each, (ast.Name, ast.Attribute, ast.Call)))
    return any(roles(facts.values(each)) & FROM_LOADER for each in inner)


def _is_tensor(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression is seen to be a tensor: of a tuple `[0]` is what lies at that place, with all its rows."""
    if isinstance(node, ast.Name):
        tree = facts.tree(node)
        around = next(tree.loops(node), None) or tree.function(node)
        above = (tree.parents[each] for each in walk(around).of(ast.Name) if each.id == node.id)
        return any(isinstance(each, ast.Attribute) and each.attr in _OF_TENSORS for each in above)
    if not isinstance(node, ast.Call):
        return False
    if Role.MODEL in roles(facts.values(node.func)):
        return may_give_one(facts, node)
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in _ONE
