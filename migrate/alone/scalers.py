"""Scalers of libraries that are called for a whole step, written out with the scaler of PyTorch that they have inside.

    scaler = NativeScaler()                     ->   scaler = torch.cuda.amp.GradScaler()

    scaler(loss, optimizer, clip_grad=limit,    ->   scaler.scale(loss).backward()
           parameters=model.parameters())            if limit is not None:
                                                         scaler.unscale_(optimizer)
                                                         torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
                                                     scaler.step(optimizer)
                                                     scaler.update()

What comes of it is what comes of any such scaler. One that is asked for more than that, or handed to a library, stays,
and is refused.
"""

from __future__ import annotations

import ast
import textwrap
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.groups import SCALERS
from migrate.analysis.known.amp import STEPS_WITH_TORCH
from migrate.analysis.roles import Role, only
from migrate.analysis.syntax import is_none

if TYPE_CHECKING:
    from collections.abc import Sequence

    from migrate.alone.pen import Pen
    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module
    from migrate.edits.parts import Part

_MADE = "torch.cuda.amp.GradScaler()"
_PARAMETERS = ("loss", "optimizer", "clip_grad")  # what follows has another place in each version
_NAMED = frozenset({*_PARAMETERS, "clip_mode", "parameters", "create_graph", "need_update"})
#: What such a scaler calls in every mode, and what that is in two of them.
_CHOSEN = "timm.utils.dispatch_clip_grad({parameters}, {clip_grad}, mode={clip_mode})"
_CLIPPING = {
    "norm": "torch.nn.utils.clip_grad_norm_({parameters}, {clip_grad})",
    "value": "torch.nn.utils.clip_grad_value_({parameters}, {clip_grad})",
    "agc": _CHOSEN,
}
_KEPT = frozenset({"state_dict", "load_state_dict"})  # mean the same of PyTorch's
_PLAIN = (ast.Name, ast.Attribute)


class Scalers:
    """The scalers of some modules that step when they are called."""

    def __init__(self, facts: Facts, modules: Sequence[Module]) -> None:
        self._facts = facts
        self._modules = modules

    @cached_property
    def made(self) -> tuple[ast.Call, ...]:
        """Where they are made; empty if one of them has to stay."""
        facts = self._facts
        if not any(SCALERS[0] in module.file.content for module in self._modules):
            return ()
        found = [use for use in facts.calls_anywhere if self._is_one(use.node)]
        if any(use.unit.module not in self._modules or use.node.args or use.node.keywords for use in found):
            return ()
        return tuple(use.node for use in found) if all(map(self._is_understood, self._reads)) else ()

    def run(self, pen: Pen) -> None:
        """Plan the edits."""
        for made in self.made:
            pen.rewrite(made, _MADE)
            pen.add_import(self._facts.file(made).path, "torch")
        for read in self._reads if self.made else ():
            call = self._facts.tree(read).parents[read]
            if isinstance(call, ast.Call) and call.func is read and (written := self._step(call)) is not None:
                template, parts = written
                pen.replace(self._facts.tree(call).statement(call), template, **parts)
                for library in ("torch", "timm.utils"):
                    if f"{library}." in template:
                        pen.add_import(self._facts.file(call).path, library)

    @cached_property
    def _reads(self) -> tuple[ast.expr, ...]:
        """The names and attributes that may hold one, where they are read, and the calls that may give one."""
        trees = (self._facts.tree(m.tree) for m in self._facts.modules if any(w in m.file.content for w in SCALERS))
        nodes = (node for tree in trees for node in tree.nodes if isinstance(node, (*_PLAIN, ast.Call)))
        return tuple(
            node
            for node in nodes
            if isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
            and any(value.name in STEPS_WITH_TORCH and value.role is Role.SCALER for value in self._facts.values(node))
        )

    def _is_one(self, call: ast.Call) -> bool:
        return bool(self._facts.called(call) & STEPS_WITH_TORCH)

    def _is_understood(self, read: ast.expr) -> bool:
        """Whether what is done with a scaler can be done with PyTorch's just as well."""
        if self._facts.module(read) not in self._modules:
            return False
        tree = self._facts.tree(read)
        above = tree.parents[read]
        if isinstance(above, ast.keyword):
            above = tree.parents[above]
        if isinstance(above, ast.Attribute):
            return above.attr in _KEPT
        if isinstance(above, ast.Call):
            return self._step(above) is not None if above.func is read else bool(self._facts.targets(above))
        is_asked = isinstance(above, (ast.If, ast.IfExp, ast.Compare, ast.BoolOp, ast.UnaryOp))
        return is_asked or isinstance(above, (ast.Assign, ast.AnnAssign, ast.Return))

    def _step(self, call: ast.Call) -> tuple[str, dict[str, Part]] | None:
        """The statements of one call: a template and what fills it; None if there are none that mean the same."""
        statement, given = self._facts.tree(call).statement(call), _arguments(call)
        if not isinstance(statement, ast.Expr) or statement.value is not call or given is None:
            return None
        if not only(self._facts.values(call.func), Role.SCALER) or not isinstance(call.func, _PLAIN):
            return None
        lines = self._stepping(given)
        if lines is None:
            return None
        twice = "create_graph" in given and ast.unparse(given["create_graph"]) != "False"
        first = f"{{scaler}}.scale({{loss}}).backward({'create_graph={create_graph}' if twice else ''})"
        if "need_update" in given and ast.unparse(given["need_update"]) != "True":
            lines = ["if {need_update}:", *(f"    {line}" for line in lines)]
        text = "\n".join((first, *lines))
        parts: dict[str, Part] = {"scaler": call.func, **given}
        return text, {name: part for name, part in parts.items() if f"{{{name}}}" in text}

    def _stepping(self, given: dict[str, ast.expr]) -> list[str] | None:
        """What follows the gradients, as a template."""
        lines = ["{scaler}.step({optimizer})", "{scaler}.update()"]
        limit, mode = given.get("clip_grad"), given.get("clip_mode", ast.Constant("norm"))
        if limit is None or is_none(limit):
            return lines
        how = _clipping(mode)
        if how is None or "parameters" not in given or not isinstance(limit, (*_PLAIN, ast.Constant)):
            return None
        clipped = ["{scaler}.unscale_({optimizer})", how]
        if isinstance(limit, ast.Constant):
            return [*clipped, *lines]
        return ["if {clip_grad} is not None:", *textwrap.indent("\n".join(clipped), "    ").split("\n"), *lines]


def _clipping(mode: ast.expr) -> str | None:
    """The call that clips, as a template."""
    if isinstance(mode, ast.Constant):
        return _CLIPPING.get(mode.value) if isinstance(mode.value, str) else None
    return _CHOSEN if isinstance(mode, _PLAIN) else None


def _arguments(call: ast.Call) -> dict[str, ast.expr] | None:
    """What a call is given, by parameter; None: that is not seen."""
    if len(call.args) > len(_PARAMETERS) or not set(_named(call)) <= _NAMED:
        return None
    if any(isinstance(given, ast.Starred) for given in call.args):
        return None
    given = dict(zip(_PARAMETERS, call.args, strict=False)) | _named(call)
    if "loss" not in given or not isinstance(given.get("optimizer"), _PLAIN):
        return None
    return given


def _named(call: ast.Call) -> dict[str, ast.expr]:
    return {keyword.arg or "**": keyword.value for keyword in call.keywords}
