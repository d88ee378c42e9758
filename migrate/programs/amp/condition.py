"""The condition for mixed precision, as it can be asked where the accelerator is made.

`use_amp = args.amp and device.type == "cuda"` is set below the device, which the accelerator chooses: there it is
`args.amp and torch.cuda.is_available()`. On a device that turns out to be the CPU mixed precision does nothing.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from migrate.programs.values.conditions import bindings_of
from migrate.programs.values.words_above import in_words_above

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

_AVAILABLE = "torch.cuda.is_available()"
_CUDA = "cuda"


def asked_early(facts: Facts, unit: Unit, flag: ast.expr, chosen: frozenset[str]) -> ast.expr:
    """The condition without the devices that are `chosen` in a unit, and without the name that it is given below."""
    if not chosen or "torch" not in unit.module.names:
        return flag
    given = given_to(facts, unit, flag)
    if given is not None and not _reads(given.value, chosen) and _is_above(facts, unit, given, chosen):
        return flag  # `fp16 = False`, which a person changes there
    found = _Asked(chosen).visit(copy.deepcopy(flag if given is None else given.value))
    is_plain = all(ast.unparse(call) == _AVAILABLE for call in ast.walk(found) if isinstance(call, ast.Call))
    return found if is_plain and not _reads(found, chosen) else flag


def asked_at(facts: Facts, start: Unit | None, unit: Unit, flag: ast.expr, chosen: frozenset[str]) -> ast.expr | None:
    """The condition for `start`, where the accelerator is made; None: not all of it can be told there."""
    asked = asked_early(facts, unit, flag, chosen)
    if start is None or start is unit:
        return asked
    given = given_to(facts, unit, flag)
    nodes = [node for each in (flag, given) if each is not None for node in ast.walk(each)]
    return in_words_above(facts, start, asked, nodes)


def given_to(facts: Facts, unit: Unit, flag: ast.expr) -> ast.Assign | None:
    """The statement that gives a name its value, if the unit gives it one thing."""
    found = bindings_of(facts, flag) if isinstance(flag, (ast.Name, ast.Attribute)) else []
    given = found[0].statement if len(found) == 1 and found[0].unit is unit else None
    return given if isinstance(given, ast.Assign) and len(given.targets) == 1 else None


def _is_above(facts: Facts, unit: Unit, given: ast.Assign, chosen: frozenset[str]) -> bool:
    """Whether a name is there before the devices are chosen, where the accelerator is made."""
    binding = (b.statement for b in facts.bindings_in(unit) if b.target in chosen)
    return all(given.lineno < statement.lineno for statement in binding)


def _reads(node: ast.expr, chosen: frozenset[str]) -> bool:
    names = (inner for inner in ast.walk(node) if isinstance(inner, (ast.Name, ast.Attribute)))
    return any(ast.unparse(name) in chosen for name in names)


class _Asked(ast.NodeTransformer):
    """Lets a question for the kind of a device that is chosen ask for a GPU instead."""

    def __init__(self, chosen: frozenset[str]) -> None:
        self._chosen = chosen

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) != 1 or not (self._is_kind(node.left) or self._is_kind(node.comparators[0])):
            return node
        texts = [each.value for each in (node.left, node.comparators[0]) if isinstance(each, ast.Constant)]
        is_cuda = isinstance(node.ops[0], (ast.Eq, ast.In)) and texts == [_CUDA]
        is_other = isinstance(node.ops[0], (ast.NotEq, ast.NotIn)) and texts == ["cpu"]
        return _available(node) if is_cuda or is_other else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """`str(device).startswith("cuda")`."""
        is_cuda = [getattr(given, "value", None) for given in node.args] == [_CUDA]
        if is_cuda and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
            return _available(node) if self._is_kind(node.func.value) else node
        return node

    def _is_kind(self, node: ast.expr) -> bool:
        """`device`, `device.type`, `str(device)`."""
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "str" and len(node.args) == 1:
            node = node.args[0]
        elif isinstance(node, ast.Attribute) and node.attr == "type":
            node = node.value
        return ast.unparse(node) in self._chosen


def _available(place: ast.expr) -> ast.expr:
    return ast.copy_location(ast.parse(_AVAILABLE, mode="eval").body, place)
