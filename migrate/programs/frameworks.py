"""Which tensor library an expression comes from: `loss.backward()` is also what other libraries say.

An expression is followed back through the names, functions and objects that it was computed from. It is foreign if that
leads to another library and nowhere to PyTorch.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.units import Class, Function, Module

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Unit

#: Libraries with tensors and a `backward` of their own.
OTHERS = frozenset("tinygrad mindspore paddle mxnet oneflow jittor chainer cupy autograd tensorflow jax".split())
TORCH = frozenset("torch torchvision torchtext torchaudio transformers timm fastai pytorch_lightning".split())
FARTHEST = 200  # expressions that are followed; what is beyond is not known


def imports(module: Module) -> frozenset[str]:
    """The top packages that a file imports."""
    found: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").split(".")[0])
    return frozenset(found)


class Frameworks:
    """The tensor libraries of a program's files and expressions."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    @cached_property
    def _imports(self) -> dict[Module, frozenset[str]]:
        return {module: imports(module) for module in self._facts.modules}

    def uses_torch(self, module: Module) -> bool:
        """Whether a file imports PyTorch, or a file of the project that does."""
        return bool(self._imports[module] & TORCH) or any(
            isinstance(value.unit, (Module, Function, Class))
            and self._imports.get(value.unit.module if not isinstance(value.unit, Module) else value.unit, TORCH)
            & TORCH
            for values in module.names.values()
            for value in values
        )

    def is_foreign(self, node: ast.expr) -> bool:
        """Whether an expression is proven to come from another library than PyTorch."""
        if not any(self._imports[module] & OTHERS for module in self._facts.modules):
            return False
        found = self.sources(node)
        return bool(found & OTHERS) and not found & TORCH

    def sources(self, node: ast.expr) -> set[str]:
        """The top packages of the library calls that an expression was computed from."""
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
        return found

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
