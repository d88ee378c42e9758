"""Running the whole program until nothing new is learnt.

Each module and function is run with what is known so far, and again when something that it has read has grown (see
`agenda`). Everything only grows and every value is made at one of finitely many places, so this comes to rest; a bound
keeps a pathological program from taking for ever, and reaching it is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.analysis import factories, hooks
from migrate.analysis.agenda import RUNS, Agenda
from migrate.analysis.annotations import believe
from migrate.analysis.calls import role_of
from migrate.analysis.known import TABLES, Tables, words
from migrate.analysis.roles import Value
from migrate.analysis.state import Frame, State
from migrate.analysis.statements import run
from migrate.analysis.units import Function, Module
from migrate.source.reach import module_name

if TYPE_CHECKING:
    from migrate.source.project import Project, SourceFile


def solve(project: Project, runs: int = RUNS, known: Tables = TABLES) -> State:
    """The picture of the program."""
    state = State(project, known)
    state.agenda = Agenda(lambda unit: _run(state, unit), runs)
    for file in project.entries:
        state.module(file)
    state.agenda.run_all()
    while _look_into_uncalled(state) or _look_into_sharers(state) or believe(state):
        state.agenda.run_all()
    state.settle()
    state.agenda.run_all()
    while _look_into_uncalled(state):  # an unknown object may have made more of them known
        state.agenda.run_all()
    factories.merge(state)
    hooks.merge(state)
    return state


def _run(state: State, unit: Module | Function) -> None:
    """Run a unit; what goes wrong in the analysis of one file costs that file."""
    try:
        _run_body(state, unit)
    except Exception as error:  # noqa: BLE001 (a bug of ours in one file must not cost the others)
        state.broken.setdefault(unit.module.path, error)


def _run_body(state: State, unit: Module | Function) -> None:
    if isinstance(unit, Module):
        run(state, unit.tree.body, Frame(unit, {}))
        return
    parameters = {name: state.parameter(unit, name) for name in unit.parameter_names}
    for name, values in parameters.items():
        state.name(unit, name, values)
    run(state, unit.body, Frame(unit, parameters))


def _look_into_uncalled(state: State) -> bool:
    """Let functions run that nobody needed so far and that may train, or name one that may; whether there was one."""
    waiting = [unit for unit in state.functions.values() if not state.agenda.is_met(unit)]
    mattering = {unit.name.encode() for unit in state.functions.values() if unit.matters} - _COMMON
    found = [unit for unit in waiting if _may_matter(unit) or (unit.calls and unit.mentions(mattering))]
    for unit in [unit for unit in found if _has_self(unit)] or found:
        _give_self(state, unit)
        state.agenda.add(unit)
    return bool(found)


def _has_self(unit: Function) -> bool:
    """Whether it is known what a function runs on; it may make the objects that methods of other classes run on."""
    return unit.owner is None or bool(unit.owner.instances)


def _may_matter(unit: Function) -> bool:
    """Whether a function trains, by its words, or is a method beside one that does."""
    return unit.matters or (unit.owner is not None and unit.owner.trains)


def _look_into_sharers(state: State) -> bool:
    """Let files run that use a function of the program, and so have a say in what becomes of it; whether there was one.

    A script that only evaluates leads to no training loop, but calls the `evaluate(model, loader)` of one that trains,
    or loads what that saves, and cuts `module.` off its keys.
    """
    shared: dict[bytes, set[bytes]] = {}
    met = {module_name(unit.module.file) for unit in state.functions.values() if state.agenda.is_met(unit)}
    for unit in state.functions.values():
        if unit.module.file.named and unit.matters and state.agenda.is_met(unit):
            name = unit.owner.node.name if unit.owner is not None else unit.name
            shared.setdefault(module_name(unit.module.file), set()).add(name.encode())
    left = [file for file in state.project.named if not state.has(file)]
    found = [file for file in left if _shares(file, shared) or _cuts_keys(file, met)]
    modules = [state.module(file) for file in found]
    return any(module is not None for module in modules)


def _shares(file: SourceFile, shared: dict[bytes, set[bytes]]) -> bool:
    used = [names for module, names in shared.items() if module in file.imported]
    return bool(used) and any(not names.isdisjoint(words.names(file.content)) for names in used)


def _cuts_keys(file: SourceFile, met: set[bytes]) -> bool:
    """Whether a script that loads a model of the program takes a prefix off its keys by its length."""
    is_cut = any(word in file.content for word in (b"[7:]", b"len('module.')", b'len("module.")'))
    return is_cut and b"load_state_dict" in file.content and not met.isdisjoint(file.imported)


#: Methods that are called without being named.
_COMMON = frozenset({b"__init__", b"__call__", b"forward", b"<lambda>"})


def _give_self(state: State, unit: Function) -> None:
    """Give a method that nobody is seen to call an object to run on: those that were made, or a likely one."""
    cls = unit.owner
    if cls is None or not unit.positional:
        return
    made = Value(role_of(state, cls), cls.node, cls.node.name, cls)
    if not unit.parameters.get(unit.positional[0].arg):
        state.join_parameter(unit, unit.positional[0].arg, cls.instances or frozenset({made}))
