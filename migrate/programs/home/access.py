"""How each function gets at the accelerator, the way a person would do it.

At home it is a name. Functions defined at home, and those of a module that is the home, see that name. Methods of a
trainer have `self.accelerator`, and so have those of a model that was handed it when it was made. A callback that is
handed the trainer has `trainer.accelerator`, where it is called in a way that takes no more. Every other function
gets a parameter: it takes the place of a `device` parameter that is no longer needed, or it is added; the callers
follow.
"""

from __future__ import annotations

import ast
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role
from migrate.analysis.syntax import line_of, walk
from migrate.analysis.units import Call, Class, Function, Module, Unit
from migrate.programs.home.asking import constructor
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.callees import reached
from migrate.programs.reach.tests import is_run_by_tests
from migrate.programs.reach.unmade import is_unmade
from migrate.programs.reach.unnamed import files, listed, unnamed, way_out
from migrate.programs.values.users import names_device

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from migrate.analysis.facts import Facts
    from migrate.analysis.signatures import Signature
    from migrate.programs.home.around import Holder
    from migrate.programs.loops import Loops

NAME = "accelerator"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A function that is handed the accelerator: in the place of its `device` parameter, or in a new one."""

    unit: Function
    replaces: ast.arg | None


class OutOfReach(Exception):
    """The accelerator cannot be brought to a place; the argument says why and what would help."""

    def __init__(
        self, node: ast.AST, why: str, way_out: str, unnamed: tuple[str, ...] = (), code: str = "MIG904"
    ) -> None:
        super().__init__(why)
        self.refusal = Refusal(node, code, why, way_out, unnamed)


@dataclass(slots=True)
class Access:
    """The answers so far; asking for a function's access gives it a parameter where it needs one."""

    facts: Facts
    loops: Loops
    program: Program
    early: frozenset[Function] = frozenset()  # what runs before the accelerator is made
    around: Mapping[Unit, Holder] = field(default_factory=dict)  # the code around the object that has it
    parameters: dict[Function, Parameter] = field(default_factory=dict)
    dissolved: frozenset[ast.AST] | None = (
        None  # branches on the main process that do not stay (programs/output/guards.py)
    )
    _files: dict[Function, tuple[str, ...]] = field(default_factory=dict)  # of the program, where one needs it, too

    @property
    def handed(self) -> tuple[Parameter, ...]:
        """Who has been handed the accelerator so far."""
        return tuple(self.parameters.values())

    def name(self, node: ast.AST) -> str:
        """What to write for the accelerator at a node.

        Raises:
            OutOfReach: the code cannot be given the accelerator.
        """
        return self.of(self.facts.unit(node))

    def of(self, unit: Unit) -> str:
        """What to write for the accelerator in a unit."""
        home = self.program.start
        assert home is not None
        if unit is home:
            return self._at_home(home)
        if unit in self.around:
            return f"{self.around[unit].name}.{NAME}"
        if isinstance(unit, Module):
            raise OutOfReach(
                unit.tree.body[0] if unit.tree.body else unit.tree,
                f"the top level of {unit.path} runs before the accelerator exists",
                "move the code into a function that the training program calls",
            )
        if unit in self.early:
            raise OutOfReach(
                unit.node,
                f"{unit.name}() needs the accelerator, and is also called before it can be made",
                f"call {unit.name}() after the device is chosen, or choose the device first",
            )
        if unit in self.program.outsiders:
            raise self._entered_elsewhere(unit)
        if self._sees_home(unit, home):
            if self._is_handed_device(unit):
                self._give(unit)
            return NAME
        if self._is_sibling(unit, home):
            return f"self.{NAME}"
        if unit.parent is not None:
            return self.of(unit.parent)
        if (holder := self._holder(unit, home)) is not None:
            return f"{holder}.{NAME}"
        if unit not in self.parameters:
            self._give(unit)
        return NAME

    def _holder(self, unit: Function, home: Unit) -> str | None:
        """What a function has that keeps the accelerator: the model it belongs to, or a trainer."""
        made = constructor(self.facts, unit)
        if made is None:
            return self._handed_holder(unit, home)
        if isinstance(made, str):
            why = f"{unit.name}() needs the accelerator, and {made}"
            raise OutOfReach(unit.node, why, f"give {unit.name}() what it asks for as a parameter")
        self.of(made)
        return unit.positional[0].arg

    def can_reach(self, node: ast.AST) -> bool:
        """Whether the accelerator is, or can be, at hand at a node."""
        return self.can_have(self.facts.unit(node))

    def can_have(self, unit: Unit) -> bool:
        """Whether a unit has the accelerator, or can be given it."""
        before = dict(self.parameters)
        try:
            self.of(unit)
        except OutOfReach:
            self.parameters = before
            return False
        return True

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """What is asked inside hands the accelerator to nobody."""
        before = dict(self.parameters)
        yield
        self.parameters = before

    def is_kept_as_it_is(self, unit: Function) -> bool:
        """Whether a function runs when there is an accelerator, and only its signature keeps it from having that.

        Not where naming a file would do.
        """
        if isinstance(unit.node, ast.Lambda) or unit in self.early:
            return False
        signature = self.facts.signatures.of(unit)
        is_kept = bool(signature.obstacles) and not signature.obstacles[0].unnamed and not self.can_have(unit)
        return is_kept and all(self._is_there(site.call) for site in signature.sites)

    def _is_there(self, call: Call) -> bool:
        """Whether there is an accelerator when a call runs."""
        holder = self.around.get(call.caller)
        return self.can_have(call.caller) and (holder is None or holder.is_there(self.facts, call.node))

    def has(self, unit: Unit) -> bool:
        """Whether a unit sees the accelerator without another parameter."""
        if isinstance(unit, Module) or unit in self.around:
            return unit is self.program.start or unit in self.around
        home = self.program.start
        assert home is not None
        if unit in self.early:
            return False
        if unit is home or self._sees_home(unit, home) or self._is_sibling(unit, home) or unit in self.parameters:
            return True
        if self._handed_holder(unit, home) is not None:
            return True
        return unit.parent is not None and self.has(unit.parent)

    def _is_handed_device(self, unit: Function) -> bool:
        """Whether a function that could read the accelerator as a global is handed its device, and so goes on being."""
        return (
            unit.parent is None
            and unit not in self.parameters
            and device_parameter(self.facts, unit) is not None
            and self.facts.signatures.of(unit).can_change
        )

    def _at_home(self, home: Unit) -> str:
        return f"self.{NAME}" if isinstance(home, Function) and home.has_object else NAME

    def _sees_home(self, unit: Function, home: Unit) -> bool:
        if isinstance(home, Module):
            return unit.module is home and unit not in self.parameters and not self._is_visited(unit)
        parent = unit.parent
        while parent is not None:
            if parent is home:
                return True
            parent = parent.parent
        return False

    def _is_visited(self, unit: Function) -> bool:
        """Whether a file that has an accelerator of its own enters a function, too: it is handed which one."""
        return any(unit.node in visitor.entered for visitor in self.program.visitors)

    def _is_sibling(self, unit: Function, home: Unit) -> bool:
        """A method of the trainer, one of whose methods is the home. Static methods see no object that has it."""
        if not isinstance(home, Function) or home.owner is None or unit.owner is None:
            return False
        if not home.has_object or not unit.has_object:
            return False
        is_same_class = home.owner in unit.owner.mro()
        # Set up in another method than __init__, the attribute is there only for what that method calls.
        return is_same_class and (home.sets_up or unit in self._called_from(home))

    def _handed_holder(self, unit: Function, home: Unit) -> str | None:
        """The parameter of a function that cannot be given another, where it is always the object which has it.

        `on_epoch_end(self, trainer)` is called by `getattr(callback, name)(self)`: `trainer.accelerator`.
        """
        if not isinstance(home, Function) or not home.sets_up or home.owner is None:
            return None
        for parameter in unit.positional[1:] if unit.has_object else unit.positional:
            given = unit.parameters.get(parameter.arg, frozenset())
            owners = [value.unit if value.role is Role.INSTANCE else None for value in given]
            if owners and all(isinstance(cls, Class) and home.owner in cls.mro() for cls in owners):
                if not _is_rebound(self.facts, unit, parameter.arg) and not self.facts.signatures.of(unit).can_change:
                    return parameter.arg
        return None

    def _called_from(self, home: Function) -> set[Function]:
        calls = (node for node in self.facts.own(home) if isinstance(node, ast.Call))
        found = reached(self.facts, (target for call in calls for target in self.facts.targets(call)))
        inside = {home, *found}
        functions = (unit for unit in found if isinstance(unit, Function))
        return {unit for unit in functions if all(call.caller in inside for call in self.facts.callers(unit))}

    def _give(self, unit: Function) -> None:
        """Let a function have the accelerator as a parameter, with the methods that it overrides; callers pass it."""
        if isinstance(unit.node, ast.Lambda):
            raise OutOfReach(unit.node, "a lambda cannot be given the accelerator", "make it a function")
        signature = self.facts.signatures.of(unit)
        units = (unit, *signature.family)
        for other in units:
            if not self.facts.is_editable(other):
                raise self._out_of_files(other)
        if signature.obstacles and not _is_left_over(self.facts, signature):
            obstacle = signature.obstacles[0]
            if obstacle.unnamed:
                raise self._out_of_files(unit)
            raise OutOfReach(
                obstacle.node,
                f"{unit.name}() needs the accelerator, and {obstacle.why}",
                f"{obstacle.way_out}, or give {unit.name}() an `accelerator` parameter yourself",
            )
        replaced = self._replaced(units)
        for other in units:
            argument = next((p for p in other.positional if p.arg == replaced), None)
            self.parameters[other] = Parameter(other, argument)
        for other in units:
            for site in self.facts.signatures.of(other).sites:
                holder = self.around.get(site.call.caller)
                if holder is not None and not holder.is_there(self.facts, site.call.node):
                    raise self._too_early(other, site.call.node)
                self.of(site.call.caller)

    def _replaced(self, units: tuple[Function, ...]) -> str | None:
        """The `device` parameter that gives way, if it does in each method that is called."""
        given = {device_parameter(self.facts, unit) for unit in units if unit.calls}
        names = {argument.arg if argument is not None else None for argument in given}
        return names.pop() if len(names) == 1 else None

    def _entered_elsewhere(self, unit: Function) -> OutOfReach:
        """A function that needs the accelerator, and that runs where there is none, too."""
        place = self.program.outsiders[unit]
        why = f"{unit.name}() needs the accelerator, and {place}, which this program does not reach, uses it, too"
        return OutOfReach(unit.node, why, f"give that place a function of its own, a copy of {unit.name}()")

    def _too_early(self, unit: Function, call: ast.Call) -> OutOfReach:
        """A function that needs the accelerator, and is called above the object that makes it."""
        line = line_of(call)
        why = f"{unit.name}() needs the accelerator, and is called in line {line}, before that is made"
        return OutOfReach(unit.node, why, f"call {unit.name}() after what trains is made")

    def _out_of_files(self, unit: Function) -> OutOfReach:
        """A function that needs the accelerator, where it or a caller of it stands in a file that was not named."""
        if unit not in self._files:
            program = self.program
            self._files[unit] = files(self.facts, self.loops, program.training, program.home, unit)
        paths = self._files[unit]
        missing = unnamed(self.facts, paths)
        why = f"{unit.name}() in {unit.module.path} needs the accelerator: the program needs {listed(missing)}"
        return OutOfReach(unit.node, why, way_out(paths, missing), missing)


def _is_left_over(facts: Facts, signature: Signature) -> bool:
    """Whether nothing calls a function, `save_model()` in a `utils.py` that came from another project.

    So are the methods of a class of which nothing makes an object. What comes to call it passes the accelerator, too. A
    command calls functions without arguments.
    """
    unit = signature.unit
    if [obstacle.is_idle for obstacle in signature.obstacles] != [True] or unit.parent is not None:
        return False
    if signature.exported or is_run_by_tests(unit) or len(unit.positional) <= len(unit.node.args.defaults):
        return False
    return unit.owner is None or is_unmade(facts, unit.owner)


def device_parameter(facts: Facts, unit: Function) -> ast.arg | None:
    """The parameter through which a function is handed the device, if each caller is seen to hand one over."""
    return facts.once(_DeviceParameters)[unit]


class _DeviceParameters(dict[Function, "ast.arg | None"]):
    """These parameters: a function is asked for its own whenever something in it may need the accelerator."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, unit: Function) -> ast.arg | None:
        self[unit] = _device_parameter(self._facts, unit)
        return self[unit]


def _device_parameter(facts: Facts, unit: Function) -> ast.arg | None:
    if any(site.is_starred or site.binds for site in facts.signatures.of(unit).sites):
        return None
    for parameter in unit.positional:
        values = unit.parameters.get(parameter.arg, frozenset())
        if (
            names_device(facts, values)
            and not _is_rebound(facts, unit, parameter.arg)
            and not _is_text(facts, unit, parameter.arg)
        ):
            defaults = len(unit.node.args.defaults)
            position = unit.positional.index(parameter)
            if position < len(unit.positional) - defaults:
                return parameter
    return None


def _is_text(facts: Facts, unit: Function, name: str) -> bool:
    """Whether a function compares what it is given with a text, `device_type == "cuda"`, which no device is."""
    tree = facts.tree(unit.node)
    reads = [n for n in walk(unit.node) if isinstance(n, ast.Name) and n.id == name]
    above = [tree.parents[n] for n in reads if isinstance(n.ctx, ast.Load)]
    return any(isinstance(node, ast.Compare) or getattr(node, "arg", "") == "device_type" for node in above)


def _is_rebound(facts: Facts, unit: Function, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in facts.own(unit)
    )
