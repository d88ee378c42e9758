"""Prepared models that are lent to code that stays as it is: files that were not named, functions that others use, too.

What such code asks of a model, and what it saves or copies, must be the model itself; what it runs and trains with must
be the wrapper. It is followed by values, through what it calls and through attributes that it keeps the model in.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.known import output
from migrate.analysis.known.distributed import COMPILING, DATA_PARALLEL, DISTRIBUTED_DATA_PARALLEL, SYNCHRONIZING
from migrate.analysis.known.training import THROUGH_WRAPPER
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import arguments
from migrate.programs.output.wrapped import asked_for_module
from migrate.programs.program import Refusal
from migrate.programs.reach.forwards import entered_with_forward
from migrate.programs.reach.outsiders import is_inside_model, units_from
from migrate.programs.reach.unnamed import listed, unnamed, way_out
from migrate.programs.training.gradients_off import without_gradients
from migrate.programs.values.checkpoints import saved

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Function, Unit
    from migrate.programs.program import Program
    from migrate.programs.stages import Stages

#: Functions that look at an object without running or keeping it, whatever is around it.
_LOOKING = frozenset(f"builtins.{name}" for name in ("print", "type", "id", "isinstance"))
_INDIFFERENT = _LOOKING | DATA_PARALLEL | DISTRIBUTED_DATA_PARALLEL | SYNCHRONIZING | COMPILING


@dataclass(frozen=True, slots=True)
class Loan:
    """What code that stays as it is does with a model that a call gives it."""

    asked: ast.expr | None  # where the model itself is needed
    run: ast.expr | None  # where it is run, and gradients may flow


def lent(facts: Facts, program: Program, edited: Container[Unit], call: ast.Call, given: ast.expr) -> Loan:
    """What becomes of a trained model behind an argument of a call; nothing where all that it comes to is `edited`."""
    mine = origins(facts.values(given), Role.MODEL) & program.model_origins
    asked: ast.expr | None = None
    run: ast.expr | None = None
    for unit, flows in _reached(facts, program, edited, call, mine):
        for node in _held(facts, unit, mine):
            above = facts.tree(node).parents[node]
            if isinstance(above, ast.Call) and above.func is node:
                run = run or (node if flows and not without_gradients(facts, above) else None)
            elif node in facts.once(_Saved).items or _asks(facts, above, node, mine):
                asked = asked or node
    return Loan(asked, run)


def asked_and_run(facts: Facts, program: Program, units: Collection[Unit], stages: Stages) -> Iterator[Refusal]:
    """Models that code which stays asks for what a wrapper does not have, and trains with, too."""
    for use in facts.calls if not program.unready else ():
        if use.unit not in units or not any(
            stays(program, units, unit) for unit in entered_with_forward(facts, use.node)
        ):
            continue
        for given in arguments(use.node):
            mine = origins(facts.values(given), Role.MODEL) & program.model_origins
            if not mine or not _is_later(facts, stages, use.node, mine):
                continue
            loan = lent(facts, program, units, use.node, given)
            if loan.asked is not None and loan.run is not None:
                yield _refusal(facts, program, use.node, loan)
                return


def _refusal(facts: Facts, program: Program, call: ast.Call, loan: Loan) -> Refusal:
    assert loan.asked is not None
    asked, path = facts.tree(loan.asked).parents[loan.asked], facts.file(loan.asked).path
    what = ast.unparse(asked if isinstance(asked, (ast.Attribute, ast.Subscript)) else loan.asked)
    does = f"runs the model and needs the one inside its wrapper for {what} (line {loan.asked.lineno})"
    if missing := unnamed(facts, [path]):
        paths = (program.module.path, *missing)
        return Refusal(call, "MIG119", f"{listed(missing)}, {does}", way_out(paths, missing))
    if is_inside_model(facts, facts.unit(asked)):
        why = f"the call of {ast.unparse(call.func)}, which has no accelerator, {does}"
        return Refusal(call, "MIG119", why, "hand over what it asks for beside the model")
    why = f"code of {path} that is also used by another program {does}"
    return Refusal(call, "MIG119", why, "hand over what it asks for beside the model")


def stays(program: Program, edited: Container[Unit], unit: Function) -> bool:
    """Whether a function is left as it is: its file was not named, others use it, too, or it has no accelerator."""
    return not unit.module.file.named or unit in program.outsiders or unit not in edited


class _Saved:
    """The items of all checkpoints."""

    def __init__(self, facts: Facts) -> None:
        self.items = frozenset(saved(facts))


def _is_later(facts: Facts, stages: Stages, call: ast.Call, mine: set[ast.AST]) -> bool:
    stage = stages.of(mine)
    if facts.unit(call) is not stage.unit:
        return True
    return call.lineno > stage.end or stage.is_of_last_round(facts.tree(call), call)


def _reached(
    facts: Facts, program: Program, edited: Container[Unit], call: ast.Call, mine: set[ast.AST]
) -> Iterator[tuple[Function, bool]]:
    """The functions that stay as they are and that a call comes to, with those that read what they keep of the model.

    With each, whether gradients may flow where it is called.
    """
    flows = not without_gradients(facts, call) and not _is_only_shown(facts, call)
    waiting = [(unit, flows) for unit in entered_with_forward(facts, call)]
    seen: set[tuple[Function, bool]] = set()
    while waiting:
        unit, flows = waiting.pop()
        if (unit, flows) in seen or not stays(program, edited, unit):
            continue
        if is_inside_model(facts, unit) and not _is_handed(unit, mine):
            continue
        seen.add((unit, flows))
        yield unit, flows
        for node in facts.own(unit):
            if isinstance(node, ast.Call):
                waiting += [(each, flows and not without_gradients(facts, node)) for each in facts.targets(node)]
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and unit.owner is not None:
                if origins(facts.values(node), Role.MODEL) & mine:
                    waiting += [(other, True) for other in facts.functions if _reads(facts, other, node.attr, mine)]


def _is_handed(unit: Function, mine: set[ast.AST]) -> bool:
    """Whether a method of a model is given another one, or itself: `average.update(model)`, `Net.pack(model)`."""
    own = unit.itself.arg if unit.itself is not None else None
    return any(origins(values, Role.MODEL) & mine for name, values in unit.parameters.items() if name != own)


def _is_only_shown(facts: Facts, call: ast.Call) -> bool:
    """`print(generate(model))`: whether nothing can come to a backward of what a call gives, nor of what it does."""
    above = facts.tree(call).parents[call]
    if not isinstance(above, ast.Call) or output.PRINT not in facts.called(above):
        return False
    reached = units_from(facts, *facts.targets(call))
    return not any(isinstance(n, ast.Attribute) and n.attr == "backward" for unit in reached for n in facts.own(unit))


def _reads(facts: Facts, unit: Function, attribute: str, mine: set[ast.AST]) -> bool:
    return unit.owner is not None and any(
        isinstance(node, ast.Attribute) and node.attr == attribute for node in _held(facts, unit, mine)
    )


def _held(facts: Facts, unit: Unit, mine: set[ast.AST]) -> Iterator[ast.expr]:
    """Where a function reads the model."""
    for node in facts.own(unit):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
            if origins(facts.values(node), Role.MODEL) & mine:
                yield node


def _asks(facts: Facts, above: ast.AST, node: ast.expr, mine: set[ast.AST]) -> bool:
    """Whether what stands around the model needs the model itself."""
    if isinstance(above, ast.Attribute):
        return above.attr not in THROUGH_WRAPPER and above.attr != "module"
    if isinstance(above, ast.Subscript):
        return above.value is node and Role.MODEL in roles(facts.values(node)) and not _is_container(facts, above, mine)
    call = facts.tree(above).parents[above] if isinstance(above, ast.keyword) else above
    if not isinstance(call, ast.Call) or call.func is node or facts.targets(call):
        return False
    if any(value.role is Role.CLASS for value in facts.values(call.func)) or asked_for_module(facts, call, mine):
        return False
    names = facts.called(call)
    return bool(names) and not names & _INDIFFERENT and not _asks_for_module(call)


def _is_container(facts: Facts, taken: ast.Subscript, mine: set[ast.AST]) -> bool:
    return bool(origins(facts.values(taken), Role.MODEL) & mine)


def _asks_for_module(call: ast.Call) -> bool:
    """`hasattr(model, "module")`: code that is ready for both."""
    return len(call.args) > 1 and isinstance(call.args[1], ast.Constant) and call.args[1].value == "module"
