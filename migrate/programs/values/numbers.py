"""Which expressions are numbers of Python or NumPy, and which are tensors, by the way they are written.

`loss.item()`, `loss.data.cpu().numpy()`, `float(loss)` beside `loss.detach()`, `loss.data`: numbers are joined as
objects, tensors are reduced.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import keyword_of, walk
from migrate.analysis.units import Function
from migrate.programs.values.assigned import parted
from migrate.programs.values.sources import Sources, passed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts

_NUMBER_METHODS = frozenset({"item", "size", "numel", "nelement", "dim", "numpy", "tolist"})
_NUMBER_CALLS = frozenset({"builtins.float", "builtins.int", "builtins.len"})
#: Functions that give what they are given: numbers of numbers, tensors of tensors.
_LIKE_ARGUMENTS = frozenset(f"builtins.{name}" for name in "abs max min pow round sum".split())
#: Libraries whose functions give no tensors.
_WITHOUT_TENSORS = ("numpy.", "math.", "scipy.", "sklearn.", "statistics.")
_TEXTS = frozenset({"builtins.str", "builtins.repr", "builtins.format"})
_SIZES = frozenset({"shape", "size"})
_TENSORS = FROM_LOADER | {Role.TENSOR}
_DEEPEST = 6
#: Of these what is computed from numbers and tensors is one of both, or an array of NumPy.
_NUMERIC = ("torch.", "builtins.", "numpy.", "math.")
_KNOWN_OBJECTS = frozenset({Role.MODEL, Role.CRITERION, Role.LOADER, Role.DATASET})


def is_number(facts: Facts, node: ast.expr, depth: int = _DEEPEST) -> bool | None:
    """Whether an expression is a number (True) or a tensor (False); None: not known."""
    found = facts.once(_Found).answers
    if (node, depth) not in found:
        found[node, depth] = _look(facts, node, depth) if depth >= 0 else None
    return found[node, depth]


class _Found:
    """What was found: where names are given values by each other, each would be followed along every way to it."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.answers: dict[tuple[ast.expr, int], bool | None] = {}


def _look(facts: Facts, node: ast.expr, depth: int) -> bool | None:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float))
    if isinstance(node, ast.BinOp):
        return _of_all(facts, (node.left, node.right), depth)
    if isinstance(node, ast.UnaryOp):
        return is_number(facts, node.operand, depth)
    if isinstance(node, ast.Compare):
        return _of_all(facts, (node.left, *node.comparators), depth)
    if isinstance(node, ast.IfExp):
        parts = {is_number(facts, side, depth) for side in (node.body, node.orelse)}
        return parts.pop() if len(parts) == 1 else None
    if isinstance(node, ast.Call):
        return _call_is_number(facts, node, depth)
    if isinstance(node, ast.Subscript):
        return _item_is_number(facts, node, depth)
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return False if roles(facts.values(node)) & _TENSORS else None
    if isinstance(node, ast.Attribute):
        return _is_option(facts, node) or None
    if isinstance(node, ast.Name):
        return _name_is_number(facts, node, depth)
    return None


def is_foreign(facts: Facts, node: ast.expr, depth: int = 4) -> bool:
    """Whether a part of an expression comes of a function of which nobody knows what it gives."""
    functions = {id(inner.func) for inner in walk(node) if isinstance(inner, ast.Call)}
    for inner in walk(node) if depth else ():
        given: list[ast.expr] = []
        if isinstance(inner, ast.Call):
            targets = facts.targets(inner)
            if _is_other_library(facts, inner) and not targets:
                return True
            returns = (n for unit in targets for n in facts.own(unit) if isinstance(n, ast.Return))
            given = [n.value for n in returns if n.value is not None]
        elif isinstance(inner, ast.Name) and id(inner) not in functions:
            if not roles(facts.values(inner)) & _KNOWN_OBJECTS:
                statements = (b.statement for b in facts.bindings_in(facts.unit(inner)) if b.target == inner.id)
                given = [s.value for s in statements if isinstance(s, ast.Assign) and s.value is not node]
        if any(is_foreign(facts, value, depth - 1) for value in given):
            return True
    return False


def is_text(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression is text, which does not add up."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    is_made = isinstance(node, ast.Call) and bool(facts.called(node) & _TEXTS)
    return is_made or isinstance(node, ast.JoinedStr) or Role.TEXT in roles(facts.values(node))


def _is_other_library(facts: Facts, call: ast.Call) -> bool:
    """Whether something else is called than PyTorch and the like, a model or a loss, or a method of what is known."""
    if roles(facts.values(call.func)) & _KNOWN_OBJECTS:
        return False
    names = facts.called(call)
    return not all(name.startswith(_NUMERIC) for name in names) if names else not isinstance(call.func, ast.Attribute)


def _of_all(facts: Facts, parts: Iterable[ast.expr], depth: int) -> bool | None:
    """Of what is computed from several: a tensor where one of them is one."""
    found = {is_number(facts, part, depth) for part in parts}
    return False if False in found else True if found == {True} else None


def _item_is_number(facts: Facts, node: ast.Subscript, depth: int) -> bool | None:
    """`x.shape[0]`, `x.size()[0]`, `loss.data.numpy()[0]`; `loss.data[0]` is a tensor wherever it runs today."""
    inner = node.value.func if isinstance(node.value, ast.Call) else node.value
    if isinstance(inner, ast.Attribute) and inner.attr in _SIZES:
        return True
    return is_number(facts, node.value, depth) if isinstance(node.value, (ast.Call, ast.Attribute)) else None


def _is_option(facts: Facts, node: ast.Attribute) -> bool:
    """`args.steps` of `add_argument("--steps", type=int)`: what the command line turns into a number."""
    option = facts.once(Sources).option(node)
    kind = keyword_of(option, "type") if option is not None else None
    names = facts.names(kind.value) if kind is not None else frozenset()
    return bool(names) and names <= _NUMBER_CALLS


def _call_is_number(facts: Facts, node: ast.Call, depth: int) -> bool | None:
    method = node.func if isinstance(node.func, ast.Attribute) else None
    called = facts.called(node)
    if called & _NUMBER_CALLS or (method is not None and method.attr in _NUMBER_METHODS):
        return True
    if called & _LIKE_ARGUMENTS and node.args:
        return _of_all(facts, node.args, depth)
    if called and all(name.startswith(_WITHOUT_TENSORS) for name in called):
        return True
    if targets := facts.targets(node):
        given = [n.value for unit in targets for n in facts.own(unit) if isinstance(n, ast.Return)]
        parts = {is_number(facts, value, depth - 1) if value is not None else None for value in given}
        return parts.pop() if len(parts) == 1 else None
    found = roles(facts.values(node))
    is_torch = any(name.startswith("torch.") for name in called)
    if method is not None and not called and is_number(facts, method.value, depth) is True:
        return True
    if Role.UNKNOWN in found or (not is_torch and (called or method is None)):  # another library answers
        return None
    return False if found & (FROM_LOADER if method is None else _TENSORS) else None


def _name_is_number(facts: Facts, node: ast.Name, depth: int) -> bool | None:
    unit = facts.unit(node)
    found: set[bool | None] = set()
    if isinstance(unit, Function) and node.id in unit.parameter_names:
        handed = (passed(call, unit, node.id) for call in facts.callers(unit))
        found |= {is_number(facts, value, depth - 1) if value is not None else None for value in handed}
    for binding in facts.bindings_in(unit):
        if binding.target == node.id and isinstance(binding.statement, ast.Assign):
            for value in _given(facts, binding.statement, node.id):
                if not (isinstance(value, ast.Name) and value.id == node.id and facts.unit(value) is unit):
                    found.add(is_number(facts, value, depth - 1))
    return found.pop() if len(found) == 1 else None


def _given(facts: Facts, statement: ast.Assign, name: str) -> list[ast.expr]:
    """What a statement gives a name: of a tuple the part at its place, as far as that can be told."""
    parts = list(parted(facts, statement, name))
    return [part for part in parts if part is not None] if None not in parts else [statement.value]


def is_zero(node: ast.expr) -> bool:
    """Whether the number 0 is written there."""
    return isinstance(node, ast.Constant) and node.value == 0 and not isinstance(node.value, bool)
