"""Branches that only told a model in DataParallel from a plain one: no model is wrapped any more."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.programs.branches import Branches, Side

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts

#: Calls in a test that only ask.
_ASKING = frozenset(
    {"builtins.isinstance", "builtins.hasattr", "builtins.len", "torch.cuda.device_count", "torch.cuda.is_available"}
)


def for_one_device(facts: Facts, wrappers: Collection[ast.Call]) -> Iterator[tuple[ast.If, bool]]:
    """`if device_count() > 1: wrap; else: ...`, with whether its body is the part for one GPU."""
    asked = [(call, branch) for call in wrappers for branch in facts.tree(call).up(call) if isinstance(branch, ast.If)]
    branches = Branches(facts) if asked else None
    for call, node in asked:
        assert branches is not None
        is_body = not any(inner is call for statement in node.body for inner in ast.walk(statement))
        sides = {meaning.fails if is_body else meaning.holds for meaning in branches.meanings(node.test)}
        if Side.MANY_DEVICES in sides and node.orelse and not _is_elif(facts, node) and not _holds_elif(node):
            yield node, is_body


def alike(facts: Facts, accesses: Collection[ast.Attribute]) -> Iterator[ast.If]:
    """`if several: model.module.state_dict(); else: model.state_dict()`: the same once `.module` is gone."""
    places = {_place(node) for node in accesses}
    told: set[ast.AST] = set()
    for access in accesses:
        for node in facts.tree(access).up(access):
            if not isinstance(node, ast.If) or node in told or not node.orelse or _is_elif(facts, node):
                continue
            told.add(node)
            calls = [inner for inner in ast.walk(node.test) if isinstance(inner, ast.Call)]
            plain = all(facts.called(call) and facts.called(call) <= _ASKING for call in calls)
            if plain and _without(node.body, places) == _without(node.orelse, places):
                yield node


def module_accesses(facts: Facts, node: ast.AST, models: Collection[ast.AST]) -> bool:
    """Whether a node is `model.module` of one of these models."""
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "module"
        and isinstance(node.ctx, ast.Load)
        and bool(origins(facts.values(node.value), Role.MODEL) & set(models))
    )


def _is_elif(facts: Facts, node: ast.If) -> bool:
    above = facts.tree(node).parents[node]
    return isinstance(above, ast.If) and above.orelse == [node] and above.col_offset == node.col_offset


def _holds_elif(node: ast.If) -> bool:
    return len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If) and node.orelse[0].col_offset == node.col_offset


def _place(node: ast.expr) -> tuple[int, int, int | None, int | None]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _without(body: list[ast.stmt], places: Collection[tuple[int, int, int | None, int | None]]) -> list[str]:
    class _Plain(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            is_access = node.attr == "module" and _place(node) in places
            self.generic_visit(node)
            return node.value if is_access else node

    return [ast.dump(_Plain().visit(copy.deepcopy(statement))) for statement in body]
