"""accelerator: the program gets an Accelerator, and every function that needs it can reach it.

    from runtime import Accelerator

    accelerator = Accelerator()                       # at module level where the training is at module level,
                                                      # else at the start of the function or __init__ that sets it up
    def train(model, device, loader):            ->   def train(model, accelerator, loader):
    train(model, device, loader)                 ->   train(model, accelerator, loader)

A flag that keeps the original on the CPU is passed on: Accelerator(cpu=not use_cuda). The accelerator takes the place
of a `device` parameter that nothing else needs, or becomes a parameter; in a class it is self.accelerator, also in a
model or loss whose forward asks it.
Refused: functions that need it and are called in ways that are not seen.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from migrate.programs.access import NAME, Parameter
from migrate.programs.asking import keeps
from migrate.programs.setup import written
from migrate.rules.device_choice import argument_for, device_line
from migrate.rules.one_seed import seeding
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.analysis.units import Function
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


_PLACE = re.compile(r" \([^()]+:\d+\)")  # where something is: the comment stands there


@rule("MIG100", "accelerator")
def accelerator(conversion: Conversion, draft: Draft) -> None:
    """Create the accelerator and hand it to the functions that asked for it. Runs last, when all have asked."""
    _create(conversion, draft)
    passed: set[ast.Call] = set()
    for parameter in list(conversion.access.parameters.values()):
        _hand_over(conversion, draft, parameter, passed)


def _create(conversion: Conversion, draft: Draft) -> None:
    placement = conversion.placement
    spot = placement.accelerator
    home = conversion.program.start
    assert home is not None
    name = conversion.access.of(home)
    arguments = draft.quoted(spot.statement, written(placement.arguments))
    code = f"{name} = Accelerator({arguments})"
    if conversion.program.annotates:
        code = "".join(f"# review: {_PLACE.sub('', doubt.why)}\n" for doubt in conversion.program.doubts) + code
    if placement.takes_choice:
        assert placement.choice is not None
        device = device_line(conversion, placement.choice)
        code = code if device is None else f"{code}\n{device}"
    code += seeding(conversion, draft, name)
    if spot.where == "instead":
        draft.replace(spot.statement, code)
    elif spot.where == "before":
        draft.before(spot.statement, code, spaced=spot.spaced)
    else:
        draft.after(spot.statement, code, spaced=spot.spaced)
    draft.add_import(spot.statement, conversion.package, "Accelerator")
    for imported in sorted({name for argument in placement.arguments for name in argument.imports}):
        draft.add_import(spot.statement, conversion.home_of(imported), imported)


def _hand_over(conversion: Conversion, draft: Draft, parameter: Parameter, passed: set[ast.Call]) -> None:
    """Give a function its parameter, and its callers the argument; a call that may enter several passes it once."""
    unit = parameter.unit
    assert not isinstance(unit.node, ast.Lambda)
    if parameter.replaces is not None:
        draft.rename_parameter(parameter.replaces, NAME)
    else:
        draft.add_parameter(unit.node, NAME, _last_required(unit))
    if (statement := keeps(conversion.facts, unit)) is not None:
        code = f"{unit.positional[0].arg}.{NAME} = {NAME}"
        (draft.after if "__init__(" in ast.unparse(statement) else draft.before)(statement, code)
    for call in (site.call for site in conversion.facts.signatures.of(unit).sites):
        if call.node in passed:
            continue
        passed.add(call.node)
        given = conversion.access.of(call.caller)
        if parameter.replaces is not None:
            old = argument_for(call.node, unit, parameter.replaces, call.bound)
            if old is not None:
                draft.replace_argument(call.node, old, given)
            continue
        position = len(_required(unit)) - int(call.bound)
        if len(call.node.args) >= position:
            draft.add_positional(call.node, position, given)
        else:
            draft.add_keyword(call.node, NAME, given)


def _required(unit: Function) -> list[ast.arg]:
    return unit.positional[: len(unit.positional) - len(unit.node.args.defaults)]


def _last_required(unit: Function) -> str | None:
    required = _required(unit)
    return required[-1].arg if required else None
