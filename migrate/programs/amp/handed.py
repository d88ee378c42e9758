"""Scalers that are handed to the project's functions: `train(model, loader, optimizer, scaler)`.

Where the accelerator scales, nobody needs them there any more: the argument goes, and the parameter with it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import is_stored
from migrate.analysis.units import Function
from migrate.programs.values.sources import by_attribute, passed, received

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit


def parameter_for(
    facts: Facts, units: Collection[Unit], given: ast.expr, is_scaler: Callable[[ast.AST], bool]
) -> ast.arg | None:
    """The parameter that takes a scaler from every call of a function, and is nothing else; None: it may be."""
    call = call_of(facts, given)
    targets = facts.targets(call) if call is not None else set()
    unit = next(iter(targets), None)
    if call is None or len(targets) != 1 or unit not in units or len(facts.values(call.func)) != 1:
        return None
    if not isinstance(unit, Function) or isinstance(unit.node, ast.Lambda) or not facts.is_editable(unit):
        return None
    signature = facts.signatures.of(unit)
    name = next((name for name, argument in received(call, unit).items() if argument is given), None)
    parameter = next((each for each in _parameters(unit.node) if each.arg == name), None)
    if parameter is None or name is None or not signature.can_change or signature.family:
        return None
    arguments = [passed(site.call, unit, name) for site in signature.sites]
    is_only_that = all(each is not None and is_scaler(each) for each in arguments)
    return parameter if is_only_that and not _is_given_anew(unit.node, name) else None


def call_of(facts: Facts, given: ast.expr) -> ast.Call | None:
    """The call that an expression is an argument of."""
    tree = facts.tree(given)
    parent = tree.parents[given]
    call = tree.parents[parent] if isinstance(parent, ast.keyword) else parent
    return call if isinstance(call, ast.Call) and call.func is not given else None


def is_read_in(facts: Facts, units: Collection[Unit], made: ast.Call) -> bool:
    """Whether some units read a scaler that another one makes and hands to them."""
    nodes = (node for unit in units for node in facts.own(unit) if isinstance(node, (ast.Name, ast.Attribute)))
    return any(made in origins(facts.values(node), Role.SCALER) for node in nodes)


def is_only_name(facts: Facts, statement: ast.Assign) -> bool:
    """Whether a statement gives an attribute of an object what nothing else gives it: `self.scaler = scaler`."""
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Attribute):
        return False
    return all(binding.statement is statement for binding in facts.once(by_attribute).get(target.attr, ()))


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _is_given_anew(node: ast.AST, name: str) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id == name and is_stored(inner) for inner in ast.walk(node))
