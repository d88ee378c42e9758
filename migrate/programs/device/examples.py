"""Calls that run a model with inputs beside it: to export or trace it, to count what it does, to draw its graph.

    torch.onnx.export(model, x, path)    profile(model, inputs=(x,))    writer.add_graph(model, x)

Both must be in one place, and nothing that is converted moves them.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from migrate.analysis.facts import Facts

_TRACERS = ("torch.jit.trace", "torch.onnx.", "torch.export.", "torch.fx.")
_SUMMARIES = ("torchsummary.", "torchinfo.", "thop.", "ptflops.", "fvcore.", "torchstat.", "torchview.")
_METHODS = frozenset({"add_graph"})  # of writers of TensorBoard


def runs_example(facts: Facts, call: ast.Call) -> bool:
    """Whether a call runs the model that it is given."""
    if isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS:
        return not facts.targets(call)
    return any(name.startswith((*_TRACERS, *_SUMMARIES)) for name in facts.called(call))
