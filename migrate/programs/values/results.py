"""What a model gives back in an evaluation loop: rows, one for each sample, or a number over the whole batch beside.

A loss that a model computes itself is that of a process's share, and no gathering makes it that of the batch.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import binds, own_nodes, reads, walk
from migrate.analysis.units import Class, Function

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts

_LOSS = re.compile(r"(^|_)(loss|losses|cost|nll|elbo|kld?|ppl|perplexity)($|_|\d)")
_FOLDING = re.compile(r"loss|criterion|cross_entropy|kl_div|^nll")
_FOLDED = frozenset({"item", "backward"})
_MEANS = frozenset({"mean", "sum"})
_NUMBERS = frozenset({"builtins.float", "builtins.int", "math.exp"})


def folded(facts: Facts, statement: ast.stmt, name: str, reading: Sequence[ast.Name]) -> str | None:
    """Why a name that the model's result was given has no rows; None if it has, as far as the code tells."""
    several = _position(statement, name)
    given = _returned(facts, *several) if several is not None else ()
    is_loss = bool(_LOSS.search(name.lower())) and _is_plain_result(facts, statement)
    if is_loss or any(_is_scalar(facts, element) for element in given):
        return f"{name} is a number that the model computes itself"
    for node in reading:
        if why := _is_used_whole(facts, node, is_one_of_several=several is not None):
            return f"{name} {why}"
    return None


def is_one_number(facts: Facts, call: ast.Call) -> bool:
    """Whether a call of a model whose result has no name gives a number over the whole batch.

    `criterion(out, y).item()`, and a model of the project each of whose results is one.
    """
    if _is_used_whole(facts, call, is_one_of_several=False):
        return True
    results = list(_results(facts, call))
    return bool(results) and all(_is_scalar(facts, result) for result in results)


def carried(statement: ast.stmt, before: Sequence[ast.stmt], targets: set[str]) -> str | None:
    """A state that the model is given, and gives back for the next batch: `out, hidden = model(x, hidden)`.

    Also where it is made something else of first, `hidden = hidden.detach()`, in the statements of the loop before.
    """
    value = getattr(statement, "value", None)
    if not isinstance(value, ast.expr):
        return None
    fresh, again = set(targets), binds(statement)
    for each in before:
        names = binds(each)
        if (reads(each) & again) - fresh:
            fresh -= names
            again |= names
        else:
            fresh |= names
    state = (reads(value) & again) - fresh
    return min(state) if state else None


def is_tuple_of_more(facts: Facts, result: ast.expr, reading: Sequence[ast.expr], *, is_one: bool = False) -> bool:
    """Whether the model's result is taken apart by position: a loss may lie beside the rows.

    Of what is one of several already, `recon, mu = model(x)`, the first few, `recon[:8]`, are rows.
    """
    if not isinstance(result, ast.Call) or _gives_one(facts, result):
        return False
    return any(_is_taken_apart(facts, node) and not (is_one and _is_cut(facts, node)) for node in reading)


def _is_cut(facts: Facts, node: ast.expr) -> bool:
    parent = facts.tree(node).parents[node]
    return isinstance(parent, ast.Subscript) and isinstance(parent.slice, ast.Slice)


def is_listed(facts: Facts, loop: ast.AST, name: str) -> bool:
    """Whether a part of a batch is only used like a list, such as the names of files: it may hold no tensors."""
    uses = [n for n in walk(loop).of(ast.Name) if n.id == name and isinstance(n.ctx, ast.Load)]
    return bool(uses) and all(_is_listed_at(facts, node) for node in uses)


def _is_listed_at(facts: Facts, node: ast.Name) -> bool:
    parent = facts.tree(node).parents[node]
    if isinstance(parent, (ast.For, ast.comprehension)):
        return parent.iter is node
    if isinstance(parent, ast.Subscript):
        return parent.value is node and not isinstance(parent.slice, (ast.Tuple, ast.Compare))
    if not isinstance(parent, ast.Call) or node not in parent.args:
        return False
    is_extend = isinstance(parent.func, ast.Attribute) and parent.func.attr == "extend"
    return is_extend or bool(facts.called(parent) & _GOING_OVER)


_GOING_OVER = frozenset(f"builtins.{name}" for name in "zip enumerate list tuple len print".split())

#: What a tensor has beside its methods.
_OF_TENSORS = frozenset("shape data T mT H device dtype ndim grad real imag is_cuda itemsize nbytes layout".split())


def has_fields(facts: Facts, node: ast.expr) -> bool:
    """`outputs.logits`, `batch["labels"]`: a result or a batch with fields, some of which may have no rows."""
    parents = facts.tree(node).parents
    parent = parents[node]
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return isinstance(parent.slice, ast.Constant) and isinstance(parent.slice.value, str)
    if not isinstance(parent, ast.Attribute) or parent.attr in _OF_TENSORS:
        return False
    above = parents[parent]
    return parent.attr in _METHODS_OF_DICTIONARIES or not (isinstance(above, ast.Call) and above.func is parent)


_METHODS_OF_DICTIONARIES = frozenset({"items", "keys", "get", "to_tuple"})


def _is_taken_apart(facts: Facts, node: ast.expr) -> bool:
    parent = facts.tree(node).parents[node]
    if isinstance(parent, ast.Assign) and parent.value is node:
        return any(isinstance(target, (ast.Tuple, ast.List)) for target in parent.targets)
    if not isinstance(parent, ast.Subscript) or parent.value is not node:
        return False
    bounds = [parent.slice.lower, parent.slice.upper] if isinstance(parent.slice, ast.Slice) else [parent.slice]
    return all(bound is None or is_integer(bound) for bound in bounds)


def is_integer(node: ast.expr) -> bool:
    """Whether a number of an element is written out."""
    value = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(value, ast.Constant) and isinstance(value.value, int)


def _direct_call(statement: ast.stmt) -> ast.Call | None:
    value = getattr(statement, "value", None)
    return value if isinstance(statement, ast.Assign) and isinstance(value, ast.Call) else None


def _position(statement: ast.stmt, name: str) -> tuple[ast.Call, int] | None:
    """The call that gives a tuple, and the place that a name has in it."""
    call = _direct_call(statement)
    if call is None or not isinstance(statement, ast.Assign):
        return None
    for target in statement.targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            for position, element in enumerate(target.elts):
                if isinstance(element, ast.Name) and element.id == name:
                    return call, position
    return None


def _is_plain_result(facts: Facts, statement: ast.stmt) -> bool:
    """Whether a statement gives names to the model's result, or to an element of it, as it came."""
    value = getattr(statement, "value", None)
    while isinstance(value, (ast.Subscript, ast.Attribute)):
        value = value.value
    return isinstance(value, ast.Call) and Role.MODEL in roles(facts.values(value.func))


def _returned(facts: Facts, call: ast.Call, position: int) -> Iterator[ast.expr]:
    """What the forward of a model of the project returns at a place of its tuple."""
    for value in _results(facts, call):
        if isinstance(value, ast.Tuple) and position < len(value.elts):
            yield value.elts[position]


def _results(facts: Facts, call: ast.Call) -> Iterator[ast.expr]:
    for value in facts.values(call.func):
        for member in value.unit.lookup("forward") if isinstance(value.unit, Class) else ():
            if isinstance(member.unit, Function):
                for node in own_nodes(member.unit.node):
                    if isinstance(node, ast.Return) and node.value is not None:
                        yield node.value


def _gives_one(facts: Facts, call: ast.Call) -> bool:
    """Whether a model is known to give one tensor."""
    models = [value for value in facts.values(call.func) if value.role is Role.MODEL]
    if models and all(value.unit is None and value.name.startswith("torch.nn.") for value in models):
        return True
    results = list(_results(facts, call))
    return bool(results) and not any(isinstance(result, (ast.Tuple, ast.Dict, ast.Name)) for result in results)


def may_give_one(facts: Facts, call: ast.Call) -> bool:
    """Whether a model may give one tensor, of which `[0]` is a row: one of PyTorch, or one of the project."""
    models = [value for value in facts.values(call.func) if value.role is Role.MODEL]
    if any(value.unit is None and value.name.startswith("torch.nn.") for value in models):
        return not all(value.name.startswith(_GIVING_SEVERAL) for value in models)
    return any(not isinstance(result, (ast.Tuple, ast.List, ast.Dict)) for result in _results(facts, call))


_GIVING_SEVERAL = tuple(f"torch.nn.{name}" for name in "RNN LSTM GRU MultiheadAttention".split())


def _is_scalar(facts: Facts, node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):  # `1 - 2 * self.weight * (p * y).sum() / (p.sum() + y.sum())`
        sides = [side for side in (node.left, node.right) if not _is_setting(side)]
        return bool(sides) and all(_is_scalar(facts, side) for side in sides)
    if isinstance(node, ast.Name):
        assigned = (n for n in own_nodes(facts.tree(node).function(node)) if isinstance(n, ast.Assign))
        given = [a.value for a in assigned if any(isinstance(t, ast.Name) and t.id == node.id for t in a.targets)]
        return bool(_LOSS.search(node.id.lower())) or any(
            _is_scalar(facts, g) for g in given if isinstance(g, ast.Call)
        )
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr in _MEANS and not node.args and not node.keywords:
        return True
    # The insides of a forward may not have been run: the name of the function has to do.
    function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return bool(_FOLDING.search(function.lower()))


def _is_setting(node: ast.expr) -> bool:
    """A number that is written out, or one of the object: `2 * self.weight`."""
    if isinstance(node, ast.BinOp):
        return _is_setting(node.left) and _is_setting(node.right)
    return isinstance(node, ast.Constant) or (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name))


def _is_used_whole(facts: Facts, node: ast.expr, *, is_one_of_several: bool) -> str | None:
    """`result.item()`, `float(result)`; of several results also `result.mean()`: it is no row."""
    parents = facts.tree(node).parents
    parent = parents[node]
    if isinstance(parent, ast.Call) and node in parent.args and facts.called(parent) & _NUMBERS:
        return "is one number for the whole batch"
    above = parents[parent]
    if not isinstance(parent, ast.Attribute) or not isinstance(above, ast.Call) or above.func is not parent:
        return None
    if parent.attr in _FOLDED:
        return "is one number for the whole batch"
    is_mean = parent.attr in _MEANS and not above.args and not above.keywords
    return "may be one number for the whole batch" if is_mean and is_one_of_several else None
