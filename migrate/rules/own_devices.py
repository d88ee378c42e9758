"""Tensors that a model moves to the GPU while it runs: `torch.zeros(1, n, 8).cuda()` goes where its weights are.

A model has no accelerator, and its weights are where prepare has put it: on the GPU of the process, or on any other
device. So it is asked where these are, in what only its `forward` comes to: elsewhere it may not have been moved yet.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.units import Function
from migrate.programs.reach.outsiders import is_inside_model

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Class, Unit
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft

#: Modules of PyTorch that have weights.
_WEIGHTED = frozenset(
    f"torch.nn.{name}"
    for name in """Linear Bilinear Embedding EmbeddingBag Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d
    ConvTranspose3d RNN LSTM GRU RNNCell LSTMCell GRUCell BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm GroupNorm PReLU
    MultiheadAttention Transformer TransformerEncoderLayer TransformerDecoderLayer Parameter""".split()
)
#: What compiles a model, and knows only some of Python.
_COMPILING = frozenset({"torch.jit.script", "torch.jit.script_if_tracing"})


def follow_weights(conversion: Conversion, draft: Draft) -> None:
    """Let what models move by `.cuda()` follow their weights."""
    facts = conversion.facts
    if any(True for _ in facts.calls_to(_COMPILING)):
        return  # which takes no `next()`
    met = set(conversion.modules).union(*map(facts.imported, conversion.modules))
    for use in facts.calls:
        if _moves_tensor(facts, use) and use.unit.module in met and use.unit not in conversion.units:
            unit = use.unit
            if isinstance(unit, Function) and _has_weights_at_hand(facts, unit):
                draft.wrap_receiver(use.node, f"{{it}}.to(next({unit.positional[0].arg}.parameters()).device)")


def _moves_tensor(facts: Facts, use: Use) -> bool:
    """`x.cuda()`, of no module."""
    func = use.node.func
    is_plain = isinstance(func, ast.Attribute) and func.attr == "cuda" and not use.node.args and not use.node.keywords
    return is_plain and not roles(facts.receiver(use.node)) & {Role.MODEL, Role.CRITERION, Role.INSTANCE}


def _has_weights_at_hand(facts: Facts, unit: Function) -> bool:
    owner = unit.owner
    if owner is None or not unit.has_object or not facts.is_editable(unit) or not is_inside_model(facts, unit):
        return False
    return _is_run_by_forward(facts, unit, set()) and _has_weights(facts, owner)


def _is_run_by_forward(facts: Facts, unit: Unit, seen: set[Unit]) -> bool:
    """Whether nothing but the `forward` of models comes to a method."""
    if not isinstance(unit, Function) or not is_inside_model(facts, unit):
        return False
    if unit.name == "forward" or unit in seen:
        return True
    seen.add(unit)
    calls = facts.callers(unit)
    return bool(calls) and facts.callers_known(unit) and all(_is_run_by_forward(facts, c.caller, seen) for c in calls)


def _has_weights(facts: Facts, owner: Class) -> bool:
    """Whether the constructor of a class of models makes some."""
    made = (cls.names.get("__init__", ()) for cls in owner.mro())
    units = (value.unit for values in made for value in values)
    nodes = (node for unit in units if isinstance(unit, Function) for node in facts.own(unit))
    return any(isinstance(node, ast.Call) and facts.called(node) & _WEIGHTED for node in nodes)
