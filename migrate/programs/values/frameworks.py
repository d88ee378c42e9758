"""Which tensor library an expression comes from: `loss.backward()` is also what other libraries say.

An expression is followed back through the names, functions and objects that it was computed from. It is foreign if that
leads to another library and nowhere to PyTorch.
"""

from __future__ import annotations

import ast
import re
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known.training import TORCH_PACKAGES
from migrate.analysis.roles import Role
from migrate.analysis.units import Class, Function, Module

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Value
    from migrate.analysis.syntax import Tree
    from migrate.analysis.units import Unit

#: Libraries whose tensors have a `backward` of their own.
OTHERS = frozenset("tinygrad paddle mxnet oneflow chainer megengine".split())
FARTHEST = 200  # expressions that are followed; what is beyond is not known


def _imports(names: frozenset[str]) -> re.Pattern[bytes]:
    """An import of one of the packages, as it stands in the text: much faster than looking for it in the tree."""
    listed = "|".join(sorted(names)).encode()
    return re.compile(
        rb"^[ \t]*(?:from[ \t]+(?:" + listed + rb")\b|import[ \t][^#\n]*\b(?:" + listed + rb")\b)", re.MULTILINE
    )


_TORCH, _OTHERS = _imports(TORCH_PACKAGES), _imports(OTHERS)
_TPU = _imports(frozenset({"torch_xla", "torch_tpu"}))


class Frameworks:
    """The tensor libraries of a program's files and expressions."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    @cached_property
    def _has_others(self) -> bool:
        """Whether another library is imported anywhere."""
        return any(_OTHERS.search(module.file.content) for module in self._facts.modules)

    def uses_torch(self, module: Module) -> bool:
        """Whether a file imports PyTorch, has it by a star (`from settings import *`), or imports a file that does."""
        if _TORCH.search(module.file.content):
            return True
        values = [value for given in module.names.values() for value in given]
        if any(value.role is Role.KNOWN and value.name.partition(".")[0] in TORCH_PACKAGES for value in values):
            return True
        others = {value.unit.module for value in values if isinstance(value.unit, (Module, Function, Class))}
        return any(_TORCH.search(other.file.content) for other in others)

    def names_tpu(self, module: Module) -> bool:
        """Whether a file imports what PyTorch runs on a TPU with."""
        return bool(_TPU.search(module.file.content))

    def is_foreign(self, node: ast.expr) -> bool:
        """Whether an expression is proven to come from another library than PyTorch."""
        found = self.sources(node) if self._has_others else frozenset()
        return bool(found & OTHERS) and not found & TORCH_PACKAGES

    def sources(self, node: ast.expr) -> set[str] | frozenset[str]:
        """The top packages of the library calls that an expression was computed from; none if that leads too far."""
        found: set[str] = set()
        seen: set[int] = set()
        waiting: list[ast.AST] = [node]
        while waiting and len(seen) < FARTHEST:
            expression = waiting.pop()
            if id(expression) in seen:
                continue
            seen.add(id(expression))
            for inner in ast.walk(expression):
                if isinstance(inner, (ast.Name, ast.Attribute)):
                    found |= self._named(inner)
                    waiting += self._given(inner)
                elif isinstance(inner, ast.Call):
                    waiting += self._returned(inner)
        return found if not waiting else frozenset()

    def _named(self, node: ast.expr) -> set[str]:
        tops = {name.split(".")[0] for name in self._facts.names(node)}
        made = {value.name.split(".")[0] for value in self._facts.values(node) if "." in value.name}
        return tops | made

    def _given(self, node: ast.expr) -> Iterator[ast.AST]:
        """The expressions that a name, or an attribute of that spelling, is given in its unit."""
        written = ast.unparse(node)
        unit: Unit | None = self._facts.unit(node)
        while unit is not None:
            for binding in self._facts.bindings_in(unit):
                if binding.target == written and isinstance(binding.statement, (ast.Assign, ast.AugAssign)):
                    yield binding.statement.value
            unit = (unit.parent or unit.module) if isinstance(unit, Function) else None

    def _returned(self, call: ast.Call) -> Iterator[ast.AST]:
        for unit in self._facts.targets(call):
            for node in self._facts.own(unit):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield node.value


def is_library_object(value: Value) -> bool:
    """An object that another library than PyTorch made; no tensor, as far as anybody can tell."""
    return value.role is Role.UNKNOWN and "." in value.name and not value.name.startswith("torch.")


def gives_something(tree: Tree, call: ast.Call) -> bool:
    """Whether the program goes on with what this `backward` gives: that of a tensor gives None, so it is a layer's own.

    `z, change = flow.backward(z)` of a flow that can be turned round, `gradient = layer.backward(gradient)` of layers
    that are written out by hand.
    """
    above = tree.parents[call]
    if not isinstance(above, ast.Assign):
        return isinstance(above, (ast.Attribute, ast.Subscript, ast.BinOp, ast.Starred))
    names = {target.id for target in above.targets if isinstance(target, ast.Name)}
    given = {argument.id for argument in call.args if isinstance(argument, ast.Name)}
    return any(isinstance(target, (ast.Tuple, ast.List)) for target in above.targets) or not names.isdisjoint(given)
