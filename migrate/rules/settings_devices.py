"""Devices among the settings that a caller has chosen: `args.device` is the accelerator's where there is one.

`args.device = "cuda:0"` stands above the accelerator, for every process alike. What is read of it below is on the
device of the process, where the model and the batches are; the setting itself is seen to in `device_choice`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.units import Function
from migrate.programs.device.devices import is_move
from migrate.programs.device.handed_down import read_of, settings_above, settings_below
from migrate.rules.handed_devices import gone, reads_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.conversion import Conversion
    from migrate.programs.device.choices import Choice
    from migrate.rules.draft import Draft


def follow_settings(conversion: Conversion, draft: Draft) -> None:
    """Let what reads a device of the settings have the accelerator's."""
    for node in _followed(conversion):
        device = f"{conversion.access.name(node)}.device"
        if (unread := _unread(conversion, node)) is not None:
            draft.remove(unread)
        else:
            draft.rewrite(node, device if _may_be_object(conversion, node) else f"{device}.type")


def settings_left(conversion: Conversion) -> list[Choice]:
    """The devices of settings that something else reads, too: a model, what compares or prints them."""
    facts, left_out = conversion.facts, gone(conversion)
    chosen = settings(conversion)
    followed = {id(node) for node in _followed(conversion)}
    read = {
        node.attr
        for unit in facts.units
        for node in read_of(facts, chosen, unit)
        if id(node) not in followed and id(node) not in left_out
    }
    return [choice for choice in chosen if choice.target.rpartition(".")[2] in read]


def origins_followed(conversion: Conversion) -> set[int]:
    """Where devices are made that nothing but the accelerator's stands for below."""
    if not (chosen := settings(conversion)):
        return set()
    left = settings_left(conversion)
    return {id(node) for choice in chosen if choice not in left for node in choice.nodes()}


def settings(conversion: Conversion) -> list[Choice]:
    """The devices of settings that are chosen where there is no accelerator."""
    facts, start = conversion.facts, conversion.program.start
    below = settings_below(facts, start, conversion.units)
    return [*settings_above(facts, start), *(each for each in below if not conversion.access.has(each.unit))]


def _followed(conversion: Conversion) -> Iterator[ast.Attribute]:
    """Where the settings are asked for their device, as such, and the accelerator is at hand."""
    facts, left_out = conversion.facts, gone(conversion)
    chosen = settings(conversion)
    for unit in conversion.ordered_units if chosen else ():
        for node in read_of(facts, chosen, unit):
            statement = facts.tree(node).statement(node)
            is_there = conversion.has_accelerator_at(statement) and conversion.access.can_reach(node)
            if is_there and id(node) not in left_out and _is_used_as_device(conversion, node):
                yield node


def _is_used_as_device(conversion: Conversion, node: ast.Attribute) -> bool:
    """`x.to(args.device)`, `device=args.device`, `sample(args.device)`, `device = args.device`: no print."""
    facts = conversion.facts
    around = facts.tree(node).parents[node]
    if isinstance(around, ast.keyword):
        return around.arg in _TOLD or bool(facts.targets(_call_of(facts, around)))
    if isinstance(around, ast.Call):
        return node in around.args and (is_move(facts, around) or bool(facts.targets(around)))
    is_renamed = isinstance(around, ast.Assign) and around.value is node and _variable(around) is not None
    return is_renamed and isinstance(facts.unit(node), Function)


#: What tensors are put on, and what is loaded.
_TOLD = frozenset({"device", "map_location"})


def _unread(conversion: Conversion, node: ast.Attribute) -> ast.Assign | None:
    """`device = args.device`, of which nothing is left that reads the variable."""
    around = conversion.facts.tree(node).parents[node]
    return around if isinstance(around, ast.Assign) and not _reads_of_variable(conversion, around) else None


def _may_be_object(conversion: Conversion, node: ast.Attribute) -> bool:
    """Whether a device may stand where a text was: nothing but moves and PyTorch's own calls take it."""
    facts = conversion.facts
    if Role.TEXT not in roles(facts.values(node)):
        return True
    around = facts.tree(node).parents[node]
    taken = _reads_of_variable(conversion, around) if isinstance(around, ast.Assign) else [node]
    return all(_is_torchs(facts, each) for each in taken)


def _reads_of_variable(conversion: Conversion, statement: ast.Assign) -> list[ast.Name]:
    unit, name = conversion.facts.unit(statement), _variable(statement)
    assert isinstance(unit, Function)
    assert name is not None
    return list(reads_of(conversion, unit, name))


def _is_torchs(facts: Facts, node: ast.expr) -> bool:
    around = facts.tree(node).parents[node]
    if isinstance(around, ast.keyword):
        return around.arg == "device" and not facts.targets(_call_of(facts, around))
    return is_move(facts, around)


def _call_of(facts: Facts, keyword: ast.keyword) -> ast.Call:
    call = facts.tree(keyword).parents[keyword]
    assert isinstance(call, ast.Call)
    return call


def _variable(statement: ast.Assign) -> str | None:
    """The one variable that an assignment gives a value."""
    target = statement.targets[0] if len(statement.targets) == 1 else None
    return target.id if isinstance(target, ast.Name) else None
