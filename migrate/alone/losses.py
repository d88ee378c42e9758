"""`torch.autograd.backward` as a loss calls it: of one tensor, or of the sum of several.

    torch.autograd.backward(loss)               ->   loss.backward()
    torch.autograd.backward([loss], [gradient]) ->   loss.backward(gradient)
    autograd.backward([first, second])          ->   (first + second).backward()
    autograd.backward(losses, ones)             ->   sum(losses).backward()

The gradients are the same to the last bit: a sum hands on to each of its parts what it was given, and the parts were
computed in the same order. Other gradients than ones that several tensors start from, and what may be a tensor or a
list of them, stay as they are, and are refused.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.groups import BACKWARDS
from migrate.analysis.roles import Role, only
from migrate.programs.loops import Loops
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.alone.pen import Pen
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module
    from migrate.edits.parts import Part

_NAME = "torch.autograd.backward"
_PARAMETERS = ("tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs")
_OPTIONS = ("retain_graph", "create_graph", "inputs")
_TENSORS = (Role.TENSOR, Role.STATISTIC, Role.SAMPLES)
_LISTS = (ast.List, ast.Tuple, ast.ListComp)
_FILLED = frozenset({"torch.tensor", "torch.as_tensor", "torch.FloatTensor", "torch.Tensor"})
_ONES = frozenset({"torch.ones"})
_WRAPPED = frozenset({"torch.autograd.Variable", "torch.autograd.variable.Variable"})
_MOVES = frozenset("to cuda cpu float double clone detach".split())
_DEEPEST = 6


class Losses:
    """The calls of `torch.autograd.backward` by which some modules train."""

    def __init__(self, facts: Facts, modules: Sequence[Module]) -> None:
        self._facts = facts
        self._modules = [module for module in modules if any(word in module.file.content for word in BACKWARDS)]
        self._sources = facts.once(Sources)

    @cached_property
    def forms(self) -> dict[ast.Call, tuple[str, dict[str, Part]]]:
        """What each call becomes: a template and what fills it."""
        if not self._modules:
            return {}
        trained = [call for loop in Loops(self._facts).training for call in loop.backwards]
        found = {call: self._form(call) for call in dict.fromkeys(trained) if self._facts.called(call) == {_NAME}}
        return {c: form for c, form in found.items() if form is not None and self._facts.module(c) in self._modules}

    def run(self, pen: Pen) -> None:
        """Plan the edits."""
        for call, (template, parts) in self.forms.items():
            pen.rewrite(call, template, **parts)
            for statement in self._idle(call):
                pen.remove(statement)

    def _idle(self, call: ast.Call) -> list[ast.stmt]:
        """What only made the ones that a call no longer starts from."""
        gradients = _gradients(_arguments(call) or {})
        if not isinstance(gradients, ast.Name) or not self._is_ones(gradients, _DEEPEST):
            return []
        tree = self._facts.tree(call)
        named = [node for node in tree.nodes if isinstance(node, ast.Name) and node.id == gradients.id]
        unit = self._facts.unit(call)
        if any(node is not gradients and isinstance(node.ctx, ast.Load) for node in named):
            return []
        made = [b.statement for b in self._facts.bindings_in(unit) if b.target == gradients.id]
        is_plain = len(named) == len(made) + 1 and all(
            isinstance(s, ast.Assign) and len(s.targets) == 1 and isinstance(s.targets[0], ast.Name) for s in made
        )
        return [s for s in made if isinstance(s, ast.Assign)] if is_plain else []

    def _form(self, call: ast.Call) -> tuple[str, dict[str, Part]] | None:
        given = _arguments(call)
        if given is None or "tensors" not in given:
            return None
        tensors, gradients = given["tensors"], _gradients(given)
        options = {name: given[name] for name in _OPTIONS if name in given}
        extra = [f"{name}={{{name}}}" for name in options]
        parts: dict[str, Part] = dict(options)
        loss = self._loss(tensors, parts)
        if loss is None:
            return None
        if gradients is not None and not self._is_ones(gradients, _DEEPEST):
            if (start := self._start(gradients)) is None or "first" in parts or "losses" in parts:
                return None
            parts["start"] = start
            extra.insert(0, "{start}")
        return f"{loss}.backward({', '.join(extra)})", parts

    def _loss(self, tensors: ast.expr, parts: dict[str, Part]) -> str | None:
        """The template of what knows its own backward; its parts are added."""
        is_plain = isinstance(tensors, (ast.List, ast.Tuple)) and not any(
            isinstance(element, ast.Starred) for element in tensors.elts
        )
        if isinstance(tensors, (ast.List, ast.Tuple)) and is_plain:
            if len(tensors.elts) == 1:
                return self._one(tensors.elts[0], parts)
            names = ["first", *(f"other{number}" for number in range(1, len(tensors.elts)))]
            parts.update(zip(names, tensors.elts, strict=False))
            return f"({' + '.join(f'{{{name}}}' for name in names)})" if tensors.elts else None
        is_list = self._is_list(tensors)
        if is_list is None:
            return None
        if not is_list:
            return self._one(tensors, parts)
        if self._is_taken("sum", tensors):
            return None
        parts["losses"] = tensors
        return "sum({losses})"

    def _one(self, tensor: ast.expr, parts: dict[str, Part]) -> str:
        parts["loss"] = tensor
        is_plain = isinstance(tensor, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
        return "{loss}" if is_plain else "({loss})"

    def _is_list(self, node: ast.expr) -> bool | None:
        """Whether there are several tensors in it; None: nobody knows."""
        values = self._facts.values(node)
        if only(values, *_TENSORS):
            return False
        if isinstance(node, _LISTS):
            return True
        if isinstance(node, ast.Call) and self._facts.called(node) in ({"builtins.list"}, {"builtins.tuple"}):
            return True
        given = self._sources.given(node)
        if given.complete and given.expressions and all(isinstance(each, _LISTS) for each in given.expressions):
            return True
        return True if only(values, Role.CONTAINER) and not isinstance(node, ast.Call) else None

    def _is_taken(self, builtin: str, node: ast.expr) -> bool:
        """Whether a name is the program's own where a node stands."""
        units = {self._facts.unit(node), self._facts.module(node)}
        parameters = {name for unit in units for name in getattr(unit, "parameter_names", ())}
        return builtin in parameters or any(b.target == builtin for u in units for b in self._facts.bindings_in(u))

    def _start(self, gradients: ast.expr) -> ast.expr | None:
        """The one gradient that one tensor starts from."""
        if isinstance(gradients, (ast.List, ast.Tuple)):
            return gradients.elts[0] if len(gradients.elts) == 1 else None
        return None if self._is_list(gradients) is not False else gradients

    def _is_ones(self, node: ast.expr, depth: int) -> bool:
        """Whether it is None, one, or a list of nothing else: what a backward starts from anyway."""
        if isinstance(node, (ast.List, ast.Tuple)):
            return bool(node.elts) and all(self._is_ones(each, depth) for each in node.elts)
        if isinstance(node, ast.ListComp):
            return self._is_ones(node.elt, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return isinstance(node.left, ast.List) and self._is_ones(node.left, depth)
        if isinstance(node, ast.Constant):
            return node.value is None
        if isinstance(node, ast.Call):
            return self._makes_one(node, depth)
        given = self._sources.given(node)
        is_whole = depth > 0 and given.complete and bool(given.expressions) and self._is_only_looked_at(node)
        return is_whole and all(self._is_ones(each, depth - 1) for each in given.expressions)

    def _is_only_looked_at(self, node: ast.expr) -> bool:
        """Whether nothing is put into what a name or attribute holds after it was made."""
        tree, text = self._facts.tree(node), ast.unparse(node)
        same = (n for n in tree.nodes if isinstance(n, type(node)) and ast.unparse(n) == text)
        above = [tree.parents[n] for n in same if isinstance(getattr(n, "ctx", None), ast.Load)]
        return all(isinstance(n, ast.Call) and self._facts.called(n) <= {_NAME, "builtins.len"} for n in above)

    def _makes_one(self, call: ast.Call, depth: int) -> bool:
        names = self._facts.called(call)
        if names & _ONES:
            return len(call.args) == 1 and _is_single(call.args[0])
        if names and names <= _FILLED:
            inner = call.args[0] if len(call.args) == 1 else None
            while isinstance(inner, ast.List) and len(inner.elts) == 1:
                inner = inner.elts[0]
            is_size = isinstance(inner, ast.Constant) and inner is call.args[0] and not names & {"torch.tensor"}
            return isinstance(inner, ast.Constant) and inner.value == 1 and not is_size
        if names and names <= _WRAPPED:
            return len(call.args) == 1 and self._is_ones(call.args[0], depth)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _MOVES and not self._facts.targets(call):
            return self._is_ones(call.func.value, depth)
        return False


def _is_single(size: ast.expr) -> bool:
    """`1`, `(1,)`, `()`."""
    parts = size.elts if isinstance(size, (ast.Tuple, ast.List)) else [size]
    return all(isinstance(part, ast.Constant) and part.value == 1 for part in parts)


def _gradients(given: dict[str, ast.expr]) -> ast.expr | None:
    return given.get("grad_tensors", given.get("grad_variables"))


def _arguments(call: ast.Call) -> dict[str, ast.expr] | None:
    """What a call is given, by parameter; None: that is not seen."""
    if any(isinstance(given, ast.Starred) for given in call.args) or len(call.args) > len(_PARAMETERS):
        return None
    given = dict(zip(_PARAMETERS, call.args, strict=False))
    for keyword in call.keywords:
        if keyword.arg not in _PARAMETERS:
            return None
        given[keyword.arg] = keyword.value
    return {n: v for n, v in given.items() if not (isinstance(v, ast.Constant) and v.value is None)}
