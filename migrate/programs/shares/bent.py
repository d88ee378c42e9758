"""Numbers of each batch that are averaged, and are no mean over its samples: `total += math.exp(loss.item())`.

So are a score that divides one sum by another (`2 * hits.sum() / (guessed.sum() + right.sum())`), and those of
libraries (`f1_score(y, guess)`). Of N processes' batches their mean is another than that of the batches of one.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import ROWS, Role, roles
from migrate.analysis.syntax import rounds, walk
from migrate.programs.values.additions import additions
from migrate.programs.values.assigned import assigned
from migrate.programs.values.lists import appended
from migrate.programs.values.sources import called_by_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function
    from migrate.programs.loops import LoopFact

_DEEPEST = 3  # names between what is added and what is computed
_BENDING = frozenset("exp expm1 log log1p log2 log10 sqrt".split())
_LIBRARIES = ("math.", "numpy.", "torch.")
_SUMS = frozenset({"numpy.sum", "torch.sum"})
_SCORES = frozenset(
    f"sklearn.metrics.{name}"
    for name in """f1_score fbeta_score precision_score recall_score roc_auc_score average_precision_score r2_score
    balanced_accuracy_score matthews_corrcoef jaccard_score cohen_kappa_score precision_recall_fscore_support""".split()
)


def bent(facts: Facts, loop: LoopFact, names: Collection[str]) -> Iterator[tuple[str, ast.Call]]:
    """Of some names those to which a loop adds such a number, with what computes it."""
    added = appended(facts, loop)
    for to, value in (pair for node in rounds(loop.node) for pair in additions(node)):
        added.setdefault(ast.unparse(to), []).append(value)
    for name in names:
        found = (call for value in added.get(name, ()) for call in _computing(facts, value, _DEEPEST))
        if (call := next(found, None)) is not None:
            yield name, call


def _computing(facts: Facts, value: ast.expr, depth: int) -> Iterator[ast.Call]:
    """The calls in an expression, or in what its names are given, that make such a number."""
    for node in walk(value):
        if isinstance(node, ast.Call) and _bends(facts, node):
            yield node
        elif isinstance(node, ast.Name) and depth and Role.STATISTIC in roles(facts.values(node)):
            given = [each for each in assigned(facts, node) if each is not None]
            if len(given) == 1:
                yield from _computing(facts, given[0], depth - 1)


def _bends(facts: Facts, call: ast.Call) -> bool:
    if targets := facts.targets(call):
        return any(_divides_sums(facts, unit) for unit in targets)
    names = facts.called(call)
    if names & _SCORES:
        return True
    is_function = any(name.startswith(_LIBRARIES) and name.rpartition(".")[2] in _BENDING for name in names)
    if is_function:
        return bool(call.args) and _is_number_of_batch(facts, call.args[0])
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in _BENDING and not names
    return is_method and isinstance(call.func, ast.Attribute) and _is_number_of_batch(facts, call.func.value)


def _is_number_of_batch(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression is one number of a batch, or made of one: `min(loss.item(), 5)`."""
    found = {role for inner in walk(node) if isinstance(inner, ast.expr) for role in roles(facts.values(inner))}
    whole = roles(facts.values(node))
    return Role.STATISTIC in found and not whole & ROWS


def _divides_sums(facts: Facts, unit: Function) -> bool:
    """Whether a function gives a ratio of sums over all that it is handed."""
    returned = (node.value for node in facts.own(unit).of(ast.Return) if node.value is not None)
    ratios = (n for value in returned for each in _given(facts, value) for n in walk(each) if isinstance(n, ast.BinOp))
    return any(isinstance(n.op, ast.Div) and _sums_all(facts, n.left) and _sums_all(facts, n.right) for n in ratios)


def _given(facts: Facts, value: ast.expr) -> list[ast.expr]:
    """An expression, and what the names in it are given."""
    names = (node for node in walk(value) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    return [value, *(each for name in names for each in assigned(facts, name) if each is not None)]


def _sums_all(facts: Facts, node: ast.expr) -> bool:
    calls = (inner for each in _given(facts, node) for inner in walk(each) if isinstance(inner, ast.Call))
    return any(_is_of_all(facts, call) for call in calls)


def _is_of_all(facts: Facts, call: ast.Call) -> bool:
    """`hits.sum()`, `torch.sum(hits)`: without a dimension."""
    is_sum = isinstance(call.func, ast.Attribute) and call.func.attr == "sum"
    is_function = not _SUMS.isdisjoint(called_by_name(facts, call))
    return is_sum and len(call.args) == int(is_function) and not call.keywords
