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

from migrate.programs.home.access import NAME, Parameter
from migrate.programs.home.asking import keeps
from migrate.programs.prepare.setup import written
from migrate.programs.reach.unmade import is_unmade
from migrate.rules.device_choice import device_line
from migrate.rules.handed_devices import handed_lines
from migrate.rules.named_devices import named_lines
from migrate.rules.one_seed import seeding
from migrate.rules.rule import rule
from migrate.rules.visitors import hand_on, invite, required

if TYPE_CHECKING:
    from migrate.analysis.units import Class, Function
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


_PLACE = re.compile(r" \([^()]+:\d+\)")  # where something is: the comment stands there


@rule("MIG100")
def accelerator(conversion: Conversion, draft: Draft) -> None:
    """Create the accelerator and hand it to the functions that asked for it. Runs last, when all have asked."""
    _create(conversion, draft)
    passed: set[ast.Call] = set()
    for parameter in list(conversion.access.parameters.values()):
        _hand_over(conversion, draft, parameter, passed)
    for visitor in conversion.program.visitors:
        invite(conversion, draft, visitor)
    for cls in dict.fromkeys(unit.owner for unit in conversion.access.parameters if unit.owner is not None):
        if is_unmade(conversion.facts, cls):
            _tell_unmade(draft, cls)


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
    code = "\n".join((code, *handed_lines(conversion), *named_lines(conversion)))
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
    for site in conversion.facts.signatures.of(unit).sites:
        if site.call.node not in passed:
            passed.add(site.call.node)
            hand_on(draft, parameter, site, conversion.access.of(site.call.caller))


def _tell_unmade(draft: Draft, cls: Class) -> None:
    """One note for a class that is handed the accelerator, and of which nothing makes an object."""
    draft.note(
        cls.node,
        f"nothing that was read makes a {cls.name}: it is handed the accelerator, and stays as it is otherwise",
        "where one is made, pass it `accelerator`, and see that what it trains with is prepared",
    )


def _last_required(unit: Function) -> str:
    """The last parameter without a default; empty where there is none."""
    needed = required(unit)
    return needed[-1].arg if needed else ""
