"""What all processes compute before the main one writes it.

    save_image(net(noise), path)    ->   result = net(noise)
                                         if accelerator.is_main_process:
                                             save_image(result, path)

A model, an evaluation or a training must be entered by all of them, and all take from a loader together. Where no
loader deals the data out, all processes draw the same, so what draws random numbers is for all, too. So it is above
data that are chosen from the same stream: a process that left out some draws would choose others.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from migrate.analysis.syntax import COMPREHENSIONS, unused_name, walk
from migrate.programs.chance.calls import Drawing, draws
from migrate.programs.chance.splits import draws_above_data
from migrate.programs.conversion import reaches_model, runs_model, takes

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


def needs_all(conversion: Conversion, node: ast.AST) -> bool:
    """Whether all processes must come to some code: it runs a model or a loader, trains, or draws what all draw."""
    return reaches_model(conversion, node) or any(_draws(conversion, inner) for inner in walk(node))


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
    names = ("batch", "taken_batch") if takes(conversion, calls[0]) else ("result", "model_result", "computed")
    name = unused_name(conversion.facts.tree(statement), *names)
    return None if is_shared else Computed(calls[0], statement, name)


def _outermost(conversion: Conversion, statement: ast.stmt) -> list[ast.Call]:
    """The calls that run a model, or draw what all draw, but for those that are handed to one of them."""
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    running = [call for call in calls if runs_model(conversion, call) or _draws(conversion, call)]
    within = {id(inner) for call in running for inner in ast.walk(call) if inner is not call}
    return [call for call in running if id(call) not in within]


def _draws(conversion: Conversion, node: ast.AST) -> bool:
    """Whether code draws what all processes draw alike; where loaders deal data out: above data that are chosen."""
    facts, program = conversion.facts, conversion.program
    entered = facts.targets(node) if isinstance(node, ast.Call) else ()
    if not draws(facts, node) and not any(facts.once(Drawing)[unit] for unit in entered):
        return False
    return not program.training_loaders or draws_above_data(facts, conversion.loops, program, node)
