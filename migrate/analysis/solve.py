"""Running the whole program until nothing new is learnt.

Each module and function is run with what is known so far, and again when something that it has read has grown (see
`agenda`). Everything only grows and every value is made at one of finitely many places, so this comes to rest; a bound
keeps a pathological program from taking for ever, and reaching it is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.analysis.agenda import RUNS, Agenda
from migrate.analysis.calls import role_of
from migrate.analysis.roles import NOTHING, Certainty, Value
from migrate.analysis.state import Frame, State
from migrate.analysis.statements import run
from migrate.analysis.units import Function, Module

if TYPE_CHECKING:
    from migrate.source.project import Project


def solve(project: Project, runs: int = RUNS) -> tuple[State, bool]:
    """The picture of the program, and whether it is complete (False: the bound was reached)."""
    state = State(project, agenda=Agenda(runs))
    for file in project.files:
        state.module(file)
    _run_all(state)
    # What is unknown now is unknown for good: from here on unknown calls make objects of their own.
    state.settled = True
    for module in state.modules.values():
        state.agenda.add(module)
    for function in state.functions.values():
        state.agenda.add(function)
    _run_all(state)
    while _seed(state):
        _run_all(state)
    return state, not state.agenda.is_cut_short


def _run_all(state: State) -> None:
    while (unit := state.agenda.next()) is not None:
        _run(state, unit)


def _run(state: State, unit: Module | Function) -> None:
    if isinstance(unit, Module):
        run(state, unit.tree.body, Frame(unit, {}))
        return
    parameters = {name: unit.parameters.get(name, NOTHING) for name in unit.parameter_names}
    for name, values in parameters.items():
        state.name(unit, name, values)
    run(state, unit.body, Frame(unit, parameters))


def _seed(state: State) -> bool:
    """Give methods that nobody is seen to call an object to run on; whether there was one."""
    seeded = False
    for unit in list(state.functions.values()):
        if unit.owner is None or not unit.positional or unit.calls:
            continue
        name = unit.positional[0].arg
        if not unit.parameters.get(name):
            cls = unit.owner
            known = {v for f in state.functions.values() if f.owner is cls for v in _selves(f)}
            made = Value(role_of(cls), cls.node, cls.node.name, cls, certainty=Certainty.LIKELY)
            state.join_parameter(unit, name, frozenset(known or {made}))
            seeded = True
    return seeded


def _selves(unit: Function) -> frozenset[Value]:
    return unit.parameters.get(unit.positional[0].arg, frozenset()) if unit.positional else frozenset()
