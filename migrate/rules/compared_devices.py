"""Comparisons of the device with the GPU that it was: of most processes it is another one, "cuda:1"."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value
    from migrate.programs.conversion import Conversion
    from migrate.programs.device.choices import Choice
    from migrate.rules.draft import Draft

_SIGNS = {ast.Eq: "==", ast.NotEq: "!="}


def ask_for_kind(conversion: Conversion, draft: Draft, choice: Choice) -> None:
    """`device == torch.device("cuda")` and `str(device) == "cuda"` become `device.type == "cuda"`.

    Only where it is compared with what the program chooses; with another device it went by, and it goes by, its number.
    """
    facts = conversion.facts
    chosen = {name for node in choice.nodes() if (name := _gpu(node)) is not None}
    made = {value.origin for node in choice.nodes() for value in _devices(facts, node)}
    for module in conversion.modules if chosen and made else ():
        for node in facts.tree_of(module).nodes:
            if not isinstance(node, ast.Compare) or len(node.ops) != 1 or type(node.ops[0]) not in _SIGNS:
                continue
            for one, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
                asked = _asked(facts, one, other)
                if asked is not None and asked[1] in chosen and {v.origin for v in _devices(facts, asked[0])} & made:
                    code = f"{{device}}.type {_SIGNS[type(node.ops[0])]} 'cuda'"
                    draft.rewrite(node, draft.quoted(node, code), device=asked[0])


def _asked(facts: Facts, one: ast.expr, other: ast.expr) -> tuple[ast.expr, str] | None:
    """The device that is compared, and the text of the GPU that it is compared with; None: it is no such comparison."""
    if isinstance(other, ast.Call) and "torch.device" in facts.called(other) and len(other.args) == 1:
        name = _gpu(other.args[0])
        return (one, name) if name is not None else None
    if isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "str" and len(one.args) == 1:
        name = _gpu(other)
        return (one.args[0], name) if name is not None else None
    return None


def _devices(facts: Facts, node: ast.AST) -> Iterator[Value]:
    values = facts.values(node) if isinstance(node, ast.expr) else ()
    return (value for value in values if value.role is Role.DEVICE and value.origin is not None)


def _gpu(node: ast.AST) -> str | None:
    """The text that names a GPU, "cuda" or "cuda:0"."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.partition(":")[0] == "cuda":
        return node.value
    return None
