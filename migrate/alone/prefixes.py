"""Checkpoints that the program wrote of its wrapped model: the keys begin with `module.`, and must go on loading."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.alone.world import WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.world import World

_STRIP = "torch.nn.modules.utils.consume_prefix_in_state_dict_if_present({state}, 'module.')"


def strips(world: World) -> Iterator[tuple[ast.stmt, str]]:
    """The statements that load into a model behind `model = DDP(model)`, and what to say before each."""
    facts = world.facts
    wrapped = {
        (facts.unit(use.node), ast.unparse(target), statement)
        for use in facts.calls_anywhere
        if use.unit.module in world.modules and facts.called(use.node) & WRAPPERS
        if isinstance(statement := facts.tree(use.node).statement(use.node), ast.Assign)
        for target in statement.targets
    }
    for use in facts.method_calls("load_state_dict"):
        if not isinstance(use.node.func, ast.Attribute) or id(use.node) in world.dead or len(use.node.args) < 1:
            continue
        state, model = use.node.args[0], ast.unparse(use.node.func.value)
        is_behind = any(
            (unit, text) == (use.unit, model) and made.lineno < use.node.lineno for unit, text, made in wrapped
        )
        is_named = isinstance(state, (ast.Name, ast.Subscript, ast.Attribute))
        if is_behind and is_named and "torch" in use.unit.module.names:
            yield facts.tree(use.node).statement(use.node), _STRIP.format(state=ast.unparse(state))
