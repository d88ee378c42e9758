"""What an evaluation takes beside the batch while that is shared out: it was made for the whole batch.

A hidden state of `batch_size` rows does not fit a share of the batch, and noise that is drawn for a share is another.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, roles
from migrate.analysis.syntax import binds
from migrate.programs.chance.calls import draws_in_evaluation, is_draw

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value

#: What has no rows.
_PLAIN = frozenset({Role.NUMBER, Role.TEXT, Role.DEVICE, Role.AVAILABLE})


def beside(facts: Facts, statements: Sequence[ast.stmt]) -> str | None:
    """Why statements, down to the model's call, cannot be run on a share of the batch; None if nothing is seen."""
    following = {name for each in statements if _asks_for_batch(facts, each) for name in binds(each)}
    for call in (node for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Call)):
        if Role.MODEL in roles(facts.values(call.func)):
            for given in _given(call):
                is_cut = given.id in following if isinstance(given, ast.Name) else _asks_for_batch(facts, given)
                if not is_cut and _has_own_rows(facts, given):
                    return f"what the model is given beside the batch (line {given.lineno}) may go by the batch's size"
        elif is_draw(facts, call) or any(draws_in_evaluation(facts, unit, set()) for unit in facts.targets(call)):
            return f"random numbers are drawn for each batch at line {call.lineno}"
    return None


def _asks_for_batch(facts: Facts, node: ast.AST) -> bool:
    """`state = model.init_hidden(x.size(0))`: what is made follows the share."""
    inner = (each for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute)))
    return any(roles(facts.values(each)) & FROM_LOADER for each in inner)


def _given(call: ast.Call) -> Iterator[ast.expr]:
    yield from (each.value if isinstance(each, ast.Starred) else each for each in call.args)
    yield from (keyword.value for keyword in call.keywords)


def _has_own_rows(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression may be a tensor, or hold one, that was not computed from the batch."""
    values = facts.values(node)
    if Role.TENSOR in roles(values):
        return True
    return any(value.role is Role.CONTAINER and not _is_of_batch(facts, value) for value in values)


def _is_of_batch(facts: Facts, container: Value) -> bool:
    """Whether all that a list, a tuple or a dictionary holds comes from the batch, or has no rows."""
    if container.origin is None:
        return False
    source = facts.source(container.origin)
    if isinstance(source, (ast.Tuple, ast.List)):
        return all(_is_plain(facts, element) for element in source.elts)
    if isinstance(source, ast.Dict):
        return all(_is_plain(facts, element) for element in source.values)
    held = facts.holding(container.origin)
    return bool(held) and all(roles(values) & (FROM_LOADER | _PLAIN) for values in held.values())


def _is_plain(facts: Facts, element: ast.expr) -> bool:
    return isinstance(element, ast.Constant) or bool(roles(facts.values(element)) & (FROM_LOADER | _PLAIN))
