"""Flags that only asked whether there is a GPU, and that nothing asks any more once the moves are gone."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.analysis.syntax import walk
from migrate.programs.device.choices import Choice, choices
from migrate.programs.device.tensor_types import definition, only_defines, reads
from migrate.programs.values.conditions import flag
from migrate.rules.placing import dropped, says_nothing, without

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


def drop_idle_flags(conversion: Conversion, draft: Draft) -> None:
    """Remove `cuda = torch.cuda.is_available()` where `if cuda:` went with the moves below it."""
    facts = conversion.facts
    needed = {name for argument in conversion.placement.arguments for name in argument.needs}
    gone: _Gone | None = None
    for module in conversion.modules:
        nodes = facts.tree_of(module).nodes
        for statement in _flags(conversion, nodes):
            name = ast.unparse(statement.targets[0])
            uses = [n for n in nodes if isinstance(n, ast.Name) and n.id == name and n not in ast.walk(statement)]
            gone = gone or _Gone(conversion)
            if name not in needed and uses and all(gone(use) for use in uses) and not _is_exported(conversion, name):
                draft.remove(statement)


def idle_functions(conversion: Conversion, choice: Choice) -> Iterator[tuple[Function, ast.FunctionDef]]:
    """`def get_device():`, a function or a method, that goes with its only call; and where it is defined."""
    facts = conversion.facts
    call = getattr(choice.statement, "value", None)
    for target in facts.targets(call) if isinstance(call, ast.Call) and choice.cpu is None else ():
        is_own = len(facts.callers(target)) == 1 and facts.unit(target.node) is not target
        if isinstance(target.node, ast.FunctionDef) and is_own and len(list(_mentions(facts, target))) == 1:
            if not _is_exported(conversion, target.name):
                yield target, target.node


def _mentions(facts: Facts, function: Function) -> Iterator[ast.AST]:
    """Where a function is read by its name; of a method, of whatever object, and where another has its name."""
    if function.owner is None:
        nodes = facts.tree(function.node).nodes
        return (node for node in nodes if isinstance(node, ast.Name) and node.id == function.name)
    everywhere = (node for module in facts.modules for node in facts.tree_of(module).nodes)
    return (
        node
        for node in everywhere
        if (isinstance(node, ast.Attribute) and node.attr == function.name)
        or (isinstance(node, ast.FunctionDef) and node.name == function.name and node is not function.node)
    )


def _flags(conversion: Conversion, nodes: Sequence[ast.AST]) -> Iterator[ast.Assign]:
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            calls = any(isinstance(inner, ast.Call) for inner in walk(node.value))
            if calls and flag(conversion.facts, node.value) is None:
                yield node


def _is_exported(conversion: Conversion, name: str) -> bool:
    """Whether another file imports the name."""
    own = conversion.modules
    stems = {Path(module.path).stem for module in own} | {""}
    return any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").rpartition(".")[2] in stems
        and any(alias.name in (name, "*") for alias in node.names)
        for module in conversion.facts.modules
        for node in module.tree.body
        if module not in own or len(own) > 1
    )


class _Gone:
    """Whether a read of a flag goes away with what it decides."""

    def __init__(self, conversion: Conversion) -> None:
        self._facts = conversion.facts
        self._calls = dropped(conversion)
        self._statements: set[ast.stmt] = {
            statement
            for node in reads(self._facts, conversion.program)
            if (statement := definition(self._facts, node)) is not None
        }
        for unit in conversion.ordered_units:
            for choice in choices(self._facts, unit):
                self._statements |= {choice.statement, *choice.others}

    def __call__(self, read: ast.Name) -> bool:
        if isinstance(read.ctx, ast.Store):
            return False
        tree = self._facts.tree(read)
        parent = tree.parents[read]
        if isinstance(parent, ast.IfExp) and parent.test is read:
            if ast.unparse(without(parent, self._calls)) == ast.unparse(parent.orelse):
                return True
        if isinstance(parent, ast.If) and parent.test is read:
            is_empty = not parent.orelse and all(self._is_gone(statement) for statement in parent.body)
            return is_empty or only_defines(parent, self._statements)
        return tree.statement(read) in self._statements

    def _is_gone(self, statement: ast.stmt) -> bool:
        return says_nothing(statement, self._calls) or statement in self._statements
