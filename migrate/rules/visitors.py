"""Files that enter functions of a converted program with objects of their own: they get an accelerator, and hand it on.

    from train import fit               ->   from runtime import Accelerator
                                             from train import fit

                                             accelerator = Accelerator(cpu=True, mixed_precision="no")

    fit(net, loader)                    ->   fit(net, loader, accelerator)

Nothing is prepared there: on one process, in full precision, what is asked of the accelerator is what was done before.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.programs.home.access import NAME, OutOfReach, Parameter
from migrate.programs.limits import bound
from migrate.rules.handed_devices import argument_for

if TYPE_CHECKING:
    import ast

    from migrate.analysis.sites import Site
    from migrate.analysis.units import Function
    from migrate.programs.conversion import Conversion
    from migrate.programs.prepare.visitors import Visitor
    from migrate.rules.draft import Draft

#: What an accelerator may be made with, and one that prepares nothing does the same without.
_WITHOUT_EFFECT = frozenset({"cpu", "kwargs_handlers"})


def invite(conversion: Conversion, draft: Draft, visitor: Visitor) -> None:
    """Give a file an accelerator, and pass it where functions of the program want it.

    Raises:
        OutOfReach: it cannot go on as it was.
    """
    entered = [(parameter, visitor.sites(unit.node)) for unit, parameter in conversion.access.parameters.items()]
    passed: set[ast.Call] = set()
    its = replace(draft, facts=visitor.facts)
    for parameter, sites in entered:
        if sites:
            _check(conversion, visitor, parameter.unit)
        for site in sites:
            if site.call.node not in passed:
                passed.add(site.call.node)
                hand_on(its, parameter, site, NAME)
    if passed:
        _make(conversion, its, visitor)
        first = min(passed, key=lambda call: call.lineno)
        what = f"what enters {entered[0][0].unit.name}() from here has an accelerator of its own, and is not prepared"
        its.note(first, what, "run this file as one process")


def hand_on(draft: Draft, parameter: Parameter, site: Site, given: str) -> None:
    """Pass the accelerator where a function is called that has got a parameter for it."""
    unit, call = parameter.unit, site.call
    if parameter.replaces is not None:
        old = argument_for(call, unit, parameter.replaces)
        if old is not None:
            draft.replace_argument(call.node, old, given)
        return
    position = len(required(unit)) - int(call.bound)
    if len(call.node.args) >= position and not site.binds:
        draft.add_positional(call.node, position, given)
    else:
        draft.add_keyword(call.node, NAME, given)


def required(unit: Function) -> list[ast.arg]:
    """The parameters of a function that have no default."""
    return unit.positional[: len(unit.positional) - len(unit.node.args.defaults)]


def _check(conversion: Conversion, visitor: Visitor, unit: Function) -> None:
    path = visitor.module.path
    more = [a for a in conversion.placement.arguments if a.name not in _WITHOUT_EFFECT]
    taken = any(bound(node) in (NAME, "Accelerator") for node in visitor.facts.tree_of(visitor.module).nodes)
    if more or taken:
        what = f"{more[0].name} of the accelerator" if more else f"the name {NAME} for something else"
        why = f"{path} enters {unit.name}() with objects of its own, and has {'no' if more else 'taken'} {what}"
        raise OutOfReach(unit.node, why, f"give {path} a copy of {unit.name}()", code="MIG901")
    if (obstacle := visitor.obstacle(unit.node)) is not None:
        why, way_out = obstacle
        raise OutOfReach(unit.node, f"{unit.name}() needs the accelerator, and {why}", way_out, code="MIG901")


def _make(conversion: Conversion, draft: Draft, visitor: Visitor) -> None:
    spot = visitor.spot()
    code = draft.quoted(spot, f"{NAME} = Accelerator(cpu=True, mixed_precision='no')")
    draft.after(spot, code, spaced=True)
    draft.add_import(spot, conversion.package, "Accelerator")
