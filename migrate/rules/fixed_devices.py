"""Devices that stand where they are used: `torch.ones(3, device="cuda")`, `train(net, device=torch.device("cuda"))`,
`Net(args.device)`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, only
from migrate.analysis.units import Function
from migrate.programs.device.makers import is_choice
from migrate.programs.device.the_cpu import is_cpu
from migrate.programs.device.tour import FACTORIES
from migrate.programs.reach.callees import reached
from migrate.programs.values.sources import passed
from migrate.programs.values.users import from_user, is_users

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

#: What a text is asked for, and a device is not.
_OF_TEXTS = frozenset("startswith endswith split partition lower upper strip replace find index isdigit".split())


@dataclass(frozen=True, slots=True)
class _Told:
    """A call that is told a device, and the parameters of the project's functions that it goes to."""

    call: ast.Call
    device: ast.expr
    parameters: tuple[ast.arg, ...]


def name_fixed(conversion: Conversion, draft: Draft) -> None:
    """Let them be the accelerator's device, but for those that give way to the accelerator itself."""
    found = [*_by_keyword(conversion), *_by_position(conversion)]
    names = {told.call: conversion.access.name(told.call) for told in found}  # asking gives functions their parameters
    replaced = {parameter.replaces for parameter in conversion.access.parameters.values()}
    for told in found:
        if replaced.isdisjoint(told.parameters):
            draft.rewrite(told.device, f"{names[told.call]}.device")


def _calls(conversion: Conversion) -> Iterator[ast.Call]:
    """The calls in the program's functions, but for moves."""
    moved = {id(move.node) for move in conversion.moves}
    yield from (use.node for use in conversion.uses if id(use.node) not in moved)


def _by_keyword(conversion: Conversion) -> Iterator[_Told]:
    for call in _calls(conversion):
        for keyword in call.keywords:
            is_here = _is_chosen_here(conversion.facts, keyword.value) and not _is_asked(conversion, keyword.value)
            if keyword.arg == "device" and (is_here or _is_number(conversion.facts, call, keyword.value)):
                yield _Told(call, keyword.value, _parameters(conversion.facts, call, keyword))


def _is_number(facts: Facts, call: ast.Call, device: ast.expr) -> bool:
    """`torch.zeros(3, device=0)`: the number of one GPU; others take numbers of other things under that name."""
    return bool(facts.called(call) & FACTORIES) and only(facts.values(device), Role.NUMBER)


def _is_chosen_here(facts: Facts, device: ast.expr) -> bool:
    return (is_choice(facts, device) or is_users(facts, device)) and not is_cpu(facts, device)


def _is_asked(conversion: Conversion, device: ast.expr) -> bool:
    """Whether the accelerator asks for what is chosen here."""
    asked = frozenset().union(*(argument.below for argument in conversion.placement.arguments))
    return not asked.isdisjoint(ast.walk(device))


def _parameters(facts: Facts, call: ast.Call, keyword: ast.keyword) -> tuple[ast.arg, ...]:
    """The parameters of the project's functions that a keyword of a call goes to."""
    given = (arg for unit in facts.targets(call) for arg in (*unit.node.args.args, *unit.node.args.kwonlyargs))
    return tuple(arg for arg in given if arg.arg == keyword.arg)


def _by_position(conversion: Conversion) -> Iterator[_Told]:
    """What a user names, where a function of the project is handed it and takes it for a device."""
    for call in _calls(conversion):
        named = [each for each in call.args if _may_give_way(conversion, call, each)]
        for device in named:
            filled = [(unit, arg) for unit, arg in _filled(conversion.facts, call, device) if arg.arg == "device"]
            if filled and not any(_is_read_as_text(conversion.facts, unit) for unit, _ in filled):
                yield _Told(call, device, tuple(arg for _, arg in filled))


def _may_give_way(conversion: Conversion, call: ast.Call, given: ast.expr) -> bool:
    statement = conversion.facts.tree(call).statement(call)
    is_users_own = is_users(conversion.facts, given)
    return is_users_own and conversion.has_accelerator_at(statement) and conversion.access.can_reach(call)


def _filled(facts: Facts, call: ast.Call, given: ast.expr) -> Iterator[tuple[Function, ast.arg]]:
    """The functions that a call enters, each with the parameter that an argument fills."""
    for unit in facts.targets(call):
        for entry in (each for each in facts.callers(unit) if each.node is call):
            yield from ((unit, arg) for arg in unit.positional if passed(entry, unit, arg.arg) is given)


def _is_read_as_text(facts: Facts, unit: Function) -> bool:
    """Whether a function, or an object that it makes, asks what a user has named as one asks a text."""
    entered = {each for each in reached(facts, [unit]) if isinstance(each, Function)}
    owners = {each.owner for each in entered} - {None}
    methods = {each for each in facts.functions if each.owner in owners}
    return any(_asks_text(facts, node) for each in entered | methods for node in facts.own(each))


def _asks_text(facts: Facts, node: ast.AST) -> bool:
    match node:
        case ast.Compare(left=left, comparators=others):
            asked = [left, *others]
        case ast.Attribute(value=value, attr=attr) if attr in _OF_TEXTS:
            asked = [value]
        case ast.FormattedValue(value=value) | ast.Subscript(value=value):
            asked = [value]
        case _:
            return False
    return any(from_user(facts.values(each)) for each in asked)
