"""Layers that set their own parameters by a batch they see, as ActNorm does by the first one.

    if not self.initialized:
        self.bias.data.copy_(-x.mean(0))

DistributedDataParallel gives all processes the parameters of the first once, when it is made: what each sets by its own
share afterwards is another on each, for ever. Where the model is run on one whole batch before the training, all
processes set the same, if they draw the same batch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import FROM_LOADER, Role, origins
from migrate.analysis.syntax import arguments, line_of, reads, walk, writes
from migrate.analysis.units import Function
from migrate.programs.chance.seeds import modules_of
from migrate.programs.reach.built import layers_of
from migrate.programs.reach.outsiders import is_inside_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Class
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

_PARAMETER = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
_DEEPEST = 3  # calls between the home and the first run of the model


def set_by_batch(facts: Facts, program: Program) -> list[ast.AST]:
    """The places where layers that a program may make set their parameters by what they are given."""
    modules = modules_of(facts, program)
    return list(layers_of(facts, program, modules, [n for n in facts.once(_all_set) if facts.module(n) in modules]))


def first_runs(facts: Facts, loops: Loops, program: Program) -> list[ast.Call]:
    """Where the model is run on a whole batch before the training, and so sets such parameters alike on all."""
    training = {loop.node for loop in program.training}
    dealt = program.training_loaders.union(*(named.origins for named in program.loaders))
    found = []
    for use in facts.calls if set_by_batch(facts, program) else ():
        mine = origins(facts.values(use.node.func), Role.MODEL) & program.model_origins
        if mine and not is_inside_model(facts, use.unit) and training.isdisjoint(loops.around(use.node, use.unit)):
            taken = {o for inner in walk(use.node) for o in origins(facts.values(inner), *FROM_LOADER)}
            if taken and not taken & dealt and _is_before(facts, loops, use.node, _DEEPEST):
                found.append(use.node)
    return found


def _is_before(facts: Facts, loops: Loops, node: ast.AST, depth: int) -> bool:
    """Whether a node always runs before a statement that trains, in its block or in that of the only call."""
    tree, unit = facts.tree(node), facts.unit(node)
    statement = tree.statement(node)
    block = tree.block(statement)
    trains = [other.lineno for other in block if loops.trains(other)]
    if trains:
        return statement.lineno < min(trains)
    callers = facts.callers(unit) if isinstance(unit, Function) and block is getattr(unit.node, "body", None) else []
    return depth > 0 and len(callers) == 1 and _is_before(facts, loops, callers[0].node, depth - 1)


def _all_set(facts: Facts) -> list[ast.AST]:
    classes = {unit.owner for unit in facts.functions if unit.name == "forward" and unit.owner is not None}
    models = [cls for cls in classes if Role.MODEL in facts.roles_of_bases(cls)]
    return sorted((n for cls in models for n in _set_in(facts, cls)), key=lambda n: (facts.file(n).path, line_of(n)))


def _set_in(facts: Facts, cls: Class) -> Iterator[ast.AST]:
    """Where the forward of a class sets its parameters, itself or in methods that it calls by `self`."""
    methods = {node.name: node for node in cls.node.body if isinstance(node, ast.FunctionDef)}
    mine = {
        target.attr
        for method in methods.values()
        for node in walk(method).of(ast.Assign)
        if isinstance(node.value, ast.Call) and facts.called(node.value) & _PARAMETER
        for target in node.targets
        if isinstance(target, ast.Attribute)
    }
    waiting, seen = ["forward"], set[str]()
    while waiting and mine:
        name = waiting.pop()
        if name in methods and name not in seen:
            seen.add(name)
            calls = (node.func for node in walk(methods[name]).of(ast.Call))
            waiting += [func.attr for func in calls if isinstance(func, ast.Attribute) and _of_self(func) == func.attr]
            yield from _by_what_is_given(methods[name], mine)


def _by_what_is_given(method: ast.FunctionDef, mine: set[str]) -> Iterator[ast.AST]:
    given = {argument.arg for argument in method.args.args[1:]}
    assigned = [node for node in walk(method) if isinstance(node, ast.Assign)]
    while more := {name for node in assigned if reads(node.value) & given for name in writes(node)} - given:
        given |= more
    for node in walk(method):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr[-1:] == "_":
            passed = arguments(node)
            if _of_self(node.func.value) in mine and any(reads(argument) & given for argument in passed):
                yield node
        elif isinstance(node, ast.Assign) and reads(node.value) & given:
            if any(isinstance(t, (ast.Attribute, ast.Subscript)) and _of_self(t) in mine for t in node.targets):
                yield node


def _of_self(node: ast.expr) -> str | None:
    """`bias` of `self.bias.squeeze().data`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        inner = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, ast.Attribute) and isinstance(inner, ast.Name) and inner.id == "self":
            return node.attr
        node = inner
    return None
