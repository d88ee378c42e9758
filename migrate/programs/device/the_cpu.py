"""The CPU by its name: the device that a program trains on, or the one that it keeps things on beside a GPU."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.analysis.units import Module


def is_cpu(facts: Facts, node: ast.expr) -> bool:
    """`"cpu"`, `torch.device("cpu")`."""
    if isinstance(node, ast.Call) and node.args and "torch.device" in facts.called(node):
        return is_cpu(facts, node.args[0])
    return isinstance(node, ast.Constant) and node.value == "cpu"


def only_cpu(facts: Facts, node: ast.expr) -> bool:
    """Whether an expression is the CPU and can be no other device."""
    return _are_cpu(facts, facts.values(node))


def _are_cpu(facts: Facts, values: Values) -> bool:
    return bool(values) and all(
        value.name == "cpu"
        if value.role is Role.TEXT
        else isinstance(value.origin, ast.expr) and is_cpu(facts, value.origin)
        for value in values
    )


def has_other_device(facts: Facts, node: ast.AST) -> bool:
    """Whether the file of a node, or one near it, chooses a device beside the CPU, or its functions are handed one.

    So it is where the file's models go to the GPU by `.cuda()`, and none of them to the CPU by its name.
    """
    module = facts.unit(node).module
    if _goes_to_gpu(facts, module):
        return True
    handed = (values for unit in facts.functions if unit.module is module for values in unit.parameters.values())
    return any(facts.is_device(values) and not _are_cpu(facts, values) for values in handed) or any(
        isinstance(binding.statement, ast.Assign)
        and facts.is_device(facts.values(binding.statement.value))
        and not only_cpu(facts, binding.statement.value)
        for binding in facts.bindings
        if facts.are_near(binding.unit.module, module)
    )


def _goes_to_gpu(facts: Facts, module: Module) -> bool:
    """Whether a file moves models by `.cuda()`, and none to what is only the CPU."""
    called = [use.node for use in facts.method_calls("cuda", "to") if use.unit.module is module]
    moved = [node for node in called if origins(facts.receiver(node), Role.MODEL)]
    given = (each for node in moved for each in (*node.args, *(keyword.value for keyword in node.keywords)))
    return any(_is_cuda(node) for node in moved) and not any(only_cpu(facts, each) for each in given)


def _is_cuda(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "cuda"
