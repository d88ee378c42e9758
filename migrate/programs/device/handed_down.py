"""The device that the function of the accelerator is handed, by itself or among the settings: a caller has chosen it.

    def train(args):
        device = args.device

    def launch():
        args.device = "cuda:0" if args.gpu else "cpu"
        train(args)

There is no accelerator yet where it is chosen, and the process has one where it is read.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.units import Function
from migrate.programs.device.choices import choices
from migrate.programs.reach.above import units_above
from migrate.programs.values.users import names_device

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit
    from migrate.programs.device.choices import Choice


def handed_device(facts: Facts, unit: Unit | None) -> ast.expr | None:
    """What a function calls the device that a user's flag may have made the CPU above; None: it is handed none.

    A device that goes by what there is alone, the accelerator chooses as well.
    """
    if not isinstance(unit, Function) or "torch" not in unit.module.names:
        return None
    flagged = [choice for choice in _chosen_above(facts, unit) if choice.asks_user]
    for parameter in unit.positional if flagged else ():
        if names_device(facts, unit.parameters.get(parameter.arg, frozenset())):
            return ast.Name(parameter.arg)
    handed = {parameter.arg for parameter in unit.positional}
    read = read_of(facts, [choice for choice in flagged if _is_setting(choice)], unit)
    return next((node for node in read if _root(node) in handed), None)


def settings_below(facts: Facts, start: Unit | None, units: Container[Unit]) -> list[Choice]:
    """The devices that functions of a program put among the settings that they make or are handed."""
    chosen = (c for unit in facts.functions if unit is not start and unit in units for c in choices(facts, unit))
    return [choice for choice in chosen if any(_is_of_settings(facts, target) for target in _targets(choice))]


def _is_of_settings(facts: Facts, target: ast.Attribute) -> bool:
    return roles(facts.values(target.value)) == {Role.HOLDER}


def _root(node: ast.expr) -> str | None:
    """The variable that an attribute is one of: `self` of `self.args.device`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def settings_above(facts: Facts, unit: Unit | None) -> list[Choice]:
    """The devices that are chosen above a function and kept in an attribute: `args.device = "cuda:0"`."""
    return [choice for choice in _chosen_above(facts, unit) if _is_setting(choice)]


def _chosen_above(facts: Facts, unit: Unit | None) -> list[Choice]:
    """The devices that are chosen by what comes to a call of a function, and by its module."""
    if not isinstance(unit, Function):
        return []
    above = dict.fromkeys((unit.module, *units_above(facts, [unit])))
    return [choice for each in above for choice in choices(facts, each)]


def _is_setting(choice: Choice) -> bool:
    return not choice.target.isidentifier()


def read_of(facts: Facts, settings: Collection[Choice], unit: Unit) -> Iterator[ast.Attribute]:
    """Where a unit reads a device that was chosen above."""
    targets = [target for choice in settings for target in _targets(choice)]
    for node in facts.own(unit).of(ast.Attribute) if targets else ():
        if isinstance(node.ctx, ast.Load) and any(_is_held(facts, node, target) for target in targets):
            if facts.is_device(facts.values(node)):
                yield node


def _targets(choice: Choice) -> Iterator[ast.Attribute]:
    """The attribute that a choice gives the device, in each of its statements."""
    for node in choice.nodes():
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node


def _is_held(facts: Facts, node: ast.Attribute, target: ast.Attribute) -> bool:
    """Whether an attribute is the one that was given the device, of the same object."""
    return node.attr == target.attr and not facts.values(node.value).isdisjoint(facts.values(target.value))
