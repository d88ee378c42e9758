"""What all processes compute before the main one writes it.

    save_image(net(noise), path)    ->   result = net(noise)
                                         if accelerator.is_main_process:
                                             save_image(result, path)

A model, an evaluation or a training must be entered by all of them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from migrate.analysis.syntax import COMPREHENSIONS, unused_name
from migrate.programs.conversion import runs_model

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion

#: What is in these is not always computed, or more than once, or is not there to be read.
_NOT_ONCE = (*COMPREHENSIONS, ast.Lambda, ast.IfExp, ast.BoolOp, ast.NamedExpr, ast.JoinedStr)


@dataclass(frozen=True, slots=True)
class Computed:
    """A call that all processes make, in a statement that one of them runs, and a name for what it gives."""

    call: ast.Call
    statement: ast.stmt
    name: str


def computed(conversion: Conversion, statement: ast.stmt) -> Computed | None:
    """The one call of a statement that all processes must make; None where there are more, or it may not be made."""
    calls = _outermost(conversion, statement)
    if not isinstance(statement, ast.Expr) or len(calls) != 1:
        return None
    above = takewhile(lambda node: node is not statement, conversion.facts.tree(statement).up(calls[0]))
    inside = ast.walk(calls[0])
    if any(isinstance(node, _NOT_ONCE) for node in above) or any(isinstance(node, ast.NamedExpr) for node in inside):
        return None
    is_shared = any(shared.unnamed is calls[0] for shared in conversion.shared)  # it has a name already
    name = unused_name(conversion.facts.tree(statement), "result", "model_result", "computed")
    return None if is_shared else Computed(calls[0], statement, name)


def _outermost(conversion: Conversion, statement: ast.stmt) -> list[ast.Call]:
    """The calls that run a model, but for those that are handed to one of them."""
    running = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and runs_model(conversion, node)]
    within = {id(inner) for call in running for inner in ast.walk(call) if inner is not call}
    return [call for call in running if id(call) not in within]
