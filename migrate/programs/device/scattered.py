"""What only DataParallel brings to the GPU: it splits what its model is given over the devices, wherever that is.

Once it is gone nobody moves these, where their loader is not prepared, or leaves its batches on the CPU.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import DATA_PARALLEL
from migrate.analysis.known.operations import PLAIN
from migrate.analysis.known.tensors import VARIABLE
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.units import Function
from migrate.programs.device.whereabouts import Where

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.conversion import Conversion

_TENSORS = frozenset({Role.TENSOR, Role.SAMPLES})
_ROWS = _TENSORS | {Role.BATCH}


@dataclass(frozen=True, slots=True)
class Unmoved:
    """What a model is given on the CPU."""

    node: ast.expr
    is_tensor: bool  # for certain; otherwise it may be a container of tensors
    shared: ast.expr | None  # the model, in a function that other programs call, too, and that is given no accelerator


def split_models(facts: Facts, units: Container[Unit]) -> set[ast.AST]:
    """Where the models were made that DataParallel is around in some units."""
    calls = [use.node for use in facts.calls_to(DATA_PARALLEL) if use.unit in units and use.node.args]
    return {origin for call in calls for origin in origins(facts.values(call.args[0]), Role.MODEL)}


def unmoved(conversion: Conversion) -> Iterator[Unmoved]:
    """What models that stood in DataParallel are given, in the loops of a program, without being moved by anybody."""
    facts = conversion.facts
    told: set[ast.expr] = set()
    for handed in conversion.where.handed:
        left = {Where.HOST} if handed.loaders <= conversion.placed_origins else {Where.HOST, Where.RAW}
        node, found = handed.node, roles(facts.values(handed.node))
        unit = facts.unit(node)
        is_own = unit in conversion.units
        if handed.place not in left or node in told or not (is_own or _is_shared(facts, unit, handed.model)):
            continue
        if found and found <= _ROWS and not isinstance(node, ast.Starred):
            told.add(node)
            yield Unmoved(node, _is_tensor(facts, node), None if is_own else handed.model)


def _is_shared(facts: Facts, unit: Unit, model: ast.expr) -> bool:
    """Whether a function can be changed, though not its signature, and has a name for the model."""
    is_named = all(isinstance(node, (ast.Name, ast.Attribute, ast.expr_context)) for node in ast.walk(model))
    return is_named and isinstance(unit, Function) and facts.is_editable(unit)


def _is_tensor(facts: Facts, node: ast.expr) -> bool:
    """Whether it is one tensor: computed, in a Variable, or asked for what only tensors have."""
    if roles(facts.values(node)) <= _TENSORS or _is_variable(facts, node):
        return True
    unit, text = facts.unit(node), ast.unparse(node)
    given = (b.statement for b in facts.bindings_in(unit) if b.target == text and isinstance(b.statement, ast.Assign))
    if any(_is_variable(facts, inner) for statement in given for inner in ast.walk(statement.value)):
        return True
    asked = (inner for inner in facts.own(unit) if isinstance(inner, ast.Attribute) and inner.attr in PLAIN)
    return any(ast.unparse(inner.value) == text for inner in asked)


def _is_variable(facts: Facts, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and bool(facts.called(node) & VARIABLE)
