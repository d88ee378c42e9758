"""The device that a user names: `args.device`, and what is handed on of it.

    config = {"device": args.device}
    device = config["device"]

Nobody but the user knows which one it is, so the text alone tells nothing; where it came from does.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.callers import TELLING
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import is_none
from migrate.analysis.units import Function
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.analysis.units import Unit

_NAME = "device"
_ENVIRONMENT = frozenset({"os.environ.get", "os.getenv"})


def from_user(values: Values) -> bool:
    """Whether values are the `.device` of a user's settings, by whatever name they go now."""
    return from_settings(values) and all(value.name == _NAME for value in values)


def from_settings(values: Values) -> bool:
    """Whether values are something of a user's settings, nobody else knows what."""
    return bool(values) and all(
        v.role is Role.METHOD and v.receiver is not None and v.receiver.role is Role.HOLDER for v in values
    )


def may_be_settings(values: Values) -> bool:
    """Whether one of the values is something of a user's settings."""
    return any(from_settings(frozenset({value})) for value in values)


def is_users(facts: Facts, node: ast.expr, *, also_names: bool = False) -> bool:
    """`args.device`, or what else gives it: `config["device"]`, `get_device()`; `also_names`: or a variable.

    Or what is given where the user names none: `config.get("device", "cpu")`.
    """
    values = facts.values(node)
    if is_of_command(facts, node):
        return True
    if isinstance(node, ast.Attribute) and node.attr == _NAME and Role.HOLDER in roles(facts.values(node.value)):
        return not facts.is_device(values) or _is_by_default(facts, node) or facts.once(_Merged).any
    if isinstance(node, ast.Call) and (facts.called(node) & _ENVIRONMENT or getattr(node.func, "attr", "") == "get"):
        return from_user(values) or is_told_or_chosen(facts, values)
    return from_user(values) and (also_names or isinstance(node, (ast.Call, ast.Subscript)))


def is_of_command(facts: Facts, node: ast.expr) -> bool:
    """`device` of `def main(device="cuda")`, which fire or typer calls with what the command line says."""
    unit = facts.unit(node)
    if not isinstance(node, ast.Name) or not isinstance(unit, Function) or node.id not in unit.parameter_names:
        return False
    told = any(call.handed is not None and call.handed.by in TELLING for call in facts.callers(unit))
    return told and facts.is_device(facts.values(node))


class _Merged:
    """Whether what a user says is put into settings that have values already: `config.merge_from_list(options)`."""

    def __init__(self, facts: Facts) -> None:
        uses = (use for name in _MERGING for use in facts.method_calls(name))
        self.any = any(Role.HOLDER in roles(facts.receiver(use.node)) for use in uses)


#: Methods of settings that take over others: those of yacs.
_MERGING = ("merge_from_list", "merge_from_file", "merge_from_other_cfg")


def _is_by_default(facts: Facts, node: ast.Attribute) -> bool:
    """Whether an option is given a device only where the user names none: `if args.device is None: ...`."""
    sources = facts.once(Sources)
    if sources.option(node) is None:
        return False
    given = sources.given(node).expressions
    return bool(given) and all(any(_asks(test) for test in _tests(facts, each)) for each in given)


def _tests(facts: Facts, node: ast.expr) -> Iterator[ast.expr]:
    return (above.test for above in facts.tree(node).up(node) if isinstance(above, ast.If))


def _asks(test: ast.expr) -> bool:
    """Whether a test asks if there is one."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and is_none(test.comparators[0]):
        test = test.left if isinstance(test.ops[0], (ast.Is, ast.Eq)) else test
    else:
        return False
    return isinstance(test, ast.Attribute) and test.attr == _NAME


def names_device(facts: Facts, values: Values) -> bool:
    """Whether an expression is a device, a text that names one, or what a user names."""
    return facts.is_device(values) or from_user(values) or is_told_or_chosen(facts, values)


def is_told_or_chosen(facts: Facts, values: Values) -> bool:
    """Whether it is what a user names where one does, and else a device that the program chooses."""
    chosen = frozenset(value for value in values if facts.is_device(frozenset({value})))
    return bool(chosen) and from_user(values - chosen)


def told_in(facts: Facts, unit: Unit, node: ast.expr) -> ast.expr:
    """What gives the user's device in a unit; the node itself where there is no other way to say it."""
    values = facts.values(node)
    if facts.unit(node) is unit or not from_user(values):
        return node
    holders = {value.receiver for value in values}
    for known in facts.own(unit):
        if isinstance(known, (ast.Attribute, ast.Subscript)) and facts.values(known) == values:
            return known
        if isinstance(known, ast.Name) and facts.values(known) and facts.values(known) <= holders:
            return ast.Attribute(ast.Name(known.id), _NAME)
    return node
