"""Devices that stand where they are used: `torch.ones(3, device="cuda")`, `train(net, device=torch.device("cuda"))`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.programs.device.devices import is_choice, is_cpu
from migrate.programs.values.users import is_users

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


def name_fixed(conversion: Conversion, draft: Draft) -> None:
    """Let them be the accelerator's device, but for those that give way to the accelerator itself."""
    found = list(_fixed(conversion))
    names = {use.node: conversion.access.name(use.node) for use, _ in found}  # asking gives functions their parameters
    replaced = {parameter.replaces for parameter in conversion.access.parameters.values()}
    for use, keyword in found:
        if not any(parameter in replaced for parameter in _parameters(conversion.facts, use.node, keyword)):
            draft.rewrite(keyword.value, f"{names[use.node]}.device")


def _fixed(conversion: Conversion) -> Iterator[tuple[Use, ast.keyword]]:
    """The calls in the program's functions that are told a device by a keyword, but for moves."""
    moved = {id(move.node) for move in conversion.moves}
    for use in conversion.uses:
        for keyword in use.node.keywords if id(use.node) not in moved else ():
            if keyword.arg == "device" and _is_chosen_here(conversion.facts, keyword.value):
                yield use, keyword


def _is_chosen_here(facts: Facts, device: ast.expr) -> bool:
    return (is_choice(facts, device) or is_users(facts, device)) and not is_cpu(facts, device)


def _parameters(facts: Facts, call: ast.Call, keyword: ast.keyword) -> list[ast.arg]:
    """The parameters of the project's functions that a keyword of a call goes to."""
    given = (arg for unit in facts.targets(call) for arg in (*unit.node.args.args, *unit.node.args.kwonlyargs))
    return [arg for arg in given if arg.arg == keyword.arg]
