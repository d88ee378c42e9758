"""Numbers of rows that are said, and do not go by the batch: `model(x).view(batch_size, 28, 28)`.

A share of the batch has fewer rows, and PyTorch refuses such a shape, or puts others into a row.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import arguments, binds, reads
from migrate.analysis.units import Function
from migrate.programs.reach.callees import reached
from migrate.programs.reach.forwards import forwards_inside
from migrate.programs.values.place import number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from migrate.analysis.facts import Facts

_SHAPING = frozenset({"view", "reshape"})


def says_rows(facts: Facts, before: Iterable[ast.stmt], forward: ast.stmt) -> str | None:
    """Why what a model is given, or computes, has a number of rows of its own; None if it goes by the batch's."""
    before = list(before)
    calls = [node for node in ast.walk(forward) if isinstance(node, ast.Call)]
    running = [call for call in calls if Role.MODEL in roles(facts.values(call.func))]
    given = [each for call in running for each in arguments(call)]
    inner = (node for part in (*before, *given) for node in ast.walk(part) if isinstance(node, ast.Call))
    if (call := next((node for node in inner if shapes(facts, node, before)), None)) is not None:
        return f"`{ast.unparse(call)}` (line {call.lineno}) says how many rows the whole batch has"
    for unit in reached(facts, {unit for call in running for unit in forwards_inside(facts, call)}):
        if isinstance(unit, Function) and (shaped := next(_shaped_inside(facts, unit), None)) is not None:
            return f"`{ast.unparse(shaped)}` in the model (line {shaped.lineno}) says how many rows the whole batch has"
    return None


def shapes(facts: Facts, node: ast.AST, before: Iterable[ast.stmt]) -> bool:
    """Whether a call gives what comes of a batch a number of rows that `before` has not taken from the batch."""
    following = {name for each in before if _is_of_batch(facts, each) for name in binds(each)}
    return _says(node, lambda each: _is_of_batch(facts, each), lambda each: bool(reads(each) & following))


def _is_of_batch(facts: Facts, node: ast.AST) -> bool:
    inner = (each for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute)))
    return any(roles(facts.values(each)) & FROM_LOADER for each in inner)


def _shaped_inside(facts: Facts, unit: Function) -> Iterator[ast.Call]:
    """The same in a function of a model: by what comes of its parameters."""
    itself = {unit.itself.arg} if unit.itself is not None else set()
    nodes = list(facts.own(unit))
    if not any(isinstance(node, ast.Attribute) and node.attr in _SHAPING for node in nodes):
        return
    given = set(unit.parameter_names) - itself
    while more := {name for node in nodes if _binds(node) and reads(node) & given for name in binds(node)} - given:
        given |= more

    def is_given(node: ast.AST) -> bool:
        return bool(reads(node) & given)

    yield from (node for node in nodes if _says(node, is_given, lambda _: False))


def _binds(node: ast.AST) -> bool:
    return isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For))


def _says(
    node: ast.AST, is_of_batch: Callable[[ast.AST], bool], follows: Callable[[ast.AST], bool]
) -> TypeGuard[ast.Call]:
    """`x.view(16, -1)`, `torch.reshape(x, (n, 3))` of a batch, where the first size is not the batch's own."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _SHAPING:
        return False
    is_function = ast.unparse(node.func.value) == "torch"
    shaped = node.args[0] if is_function and node.args else node.func.value
    sizes = node.args[int(is_function) :]
    first = sizes[0].elts[0] if sizes and isinstance(sizes[0], (ast.Tuple, ast.List)) and sizes[0].elts else None
    first = first or (sizes[0] if sizes else None)
    if first is None or number(first) == -1 or ast.unparse(first).startswith("torch."):  # a dtype
        return False
    return is_of_batch(shaped) and not is_of_batch(first) and not follows(first)
