"""Whether all processes of a program see the same at a place, and come there equally often.

Every process runs the same program. Without loaders that deal the data out, what they compute is the same as long as it
comes from constants, options, files and their sizes; what is drawn, measured, or played against an environment may be
another on each. What is not proven to be the same may differ.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from migrate.analysis.known import callers, output
from migrate.analysis.known import same as known
from migrate.analysis.roles import FROM_LOADER, PLACE, Role, origins, roles
from migrate.analysis.syntax import COMPREHENSIONS, FUNCTIONS, arguments
from migrate.analysis.units import Class, Function, Module
from migrate.programs.chance.calls import asks_chance
from migrate.programs.chance.seeds import forward_draws
from migrate.programs.marker import asks_accelerator, is_of_all
from migrate.programs.processes.answers import Answers
from migrate.programs.processes.class_fields import is_same_field
from migrate.programs.processes.films import is_recorder
from migrate.programs.processes.items import Item, is_same_item, item_of, leaves
from migrate.programs.processes.options import is_same_option
from migrate.programs.processes.parting import parting
from migrate.programs.processes.presence import PRESENCE, Presence, asked_for, is_there_alike
from migrate.programs.reach.entry_files import calls_in
from migrate.programs.training.modes import Mode, Modes
from migrate.programs.training.unsteady import unsteady
from migrate.programs.values.fillings import Fillings, Sharing, shares
from migrate.programs.values.in_rounds import given_in_rounds
from migrate.programs.values.masks import may_be_mask
from migrate.programs.values.sources import Sources, called_by_name, may_pass, parts_given
from migrate.programs.values.stars import hidden, starred, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.analysis.units import Unit
    from migrate.programs.program import Program

_FUNCTIONS = (Role.FUNCTION, Role.METHOD)
_Asked = bool | Item | Presence
_DEALT = frozenset({Role.LOADER, *FROM_LOADER})
_OBJECTS = frozenset({Role.MODEL, Role.OPTIMIZER, Role.SCHEDULER, Role.CRITERION})


class Sameness:
    """The answers for one program.

    The models that it trains have the same weights on all processes. `trusting`: all that is drawn is seeded, so only
    clocks tell the processes apart; `drawing`: and what is drawn beside the batches, of which each has others.
    """

    def __init__(self, facts: Facts, program: Program, *, trusting: bool, drawing: bool = False) -> None:
        self._facts = facts
        self.calls = partial(calls_in, facts, program)
        self._trained = frozenset() if forward_draws(facts, program) else program.model_origins
        self._modes = program.once(Modes, facts)
        self._is_steady = not unsteady(facts, program)
        self.trusting = trusting
        self.drawing = drawing
        self._sources = facts.once(Sources)
        self._fillings = facts.once(Fillings)
        self.answers = Answers[tuple[ast.AST, str], ast.expr | ast.ExceptHandler]()  # with what is a process's own

    # --- values -----------------------------------------------------------------------------------------------------

    def same(self, node: ast.AST | None) -> bool:
        """Whether an expression has the same value on all processes."""
        if node is None or isinstance(node, ast.Constant):
            return True
        return self.answers.to((node, "same"), lambda: self._is_same(node))

    def _is_same(self, node: ast.AST) -> bool:
        if asks_accelerator(node):
            return is_of_all(node)
        if self.drawing and isinstance(node, ast.expr) and roles(self._facts.values(node)) & _DEALT:
            return True  # decisions by the process's own batch are another question
        if isinstance(node, (ast.Name, ast.Attribute)):
            return not roles(self._facts.values(node)) & PLACE and self.named(node, value=True)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, COMPREHENSIONS):
            return all(self.same(g.iter) and all(map(self.same, g.ifs)) for g in node.generators) and all(
                self.same(part) for part in ast.iter_child_nodes(node) if not isinstance(part, ast.comprehension)
            )
        if isinstance(node, ast.Subscript) and (item := item_of(node)):
            return self.item(*item)
        if (asked := asked_for(node)) is not None and is_there_alike(self._facts, self, asked):
            return True
        if isinstance(node, ast.Lambda):
            return self.trusting and self.same(node.body)
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom)):
            return self.trusting
        return all(self.same(part) for part in ast.iter_child_nodes(node) if _is_expression(part))

    def item(self, container: ast.expr, item: Item) -> bool:
        """Whether what stands under a key of a container is the same."""
        return self.answers.to((container, f"[{item.key}]"), lambda: is_same_item(self._facts, self, container, item))

    def _call(self, node: ast.Call) -> bool:
        names = called_by_name(self._facts, node)
        if not names and not self._facts.targets(node) and (item := item_of(node)):
            return self.item(*item) and all(map(self.same, arguments(node))) and not asks_chance(self._facts, node)
        if self._is_own(node, names) or (self.drawing and self._is_drawn(node, names)):
            return False
        if "builtins.len" in names and node.args:
            return self.even(node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr in known.SIZES and not names:
            return self.even(node.func.value)
        if self.trusting:
            return self._trusts(node, names)
        given = all(map(self.same, arguments(node)))
        if names:
            return given and all(name.startswith(known.PURE) and not known.draws(name) for name in names)
        if targets := self._facts.targets(node):
            return given and all(self.gives_same(target) for target in targets)
        if self._evaluates(node):
            return given
        if not isinstance(node.func, ast.Attribute) or roles(self._facts.receiver(node)) & {Role.MODEL, Role.INSTANCE}:
            return False
        return given and self.same(node.func.value) and not asks_chance(self._facts, node)

    def _is_own(self, node: ast.expr, names: frozenset[str]) -> bool:
        """Whether a clock or the system gives each process something of its own; it is kept, for people to read."""
        if found := any(map(known.is_own, names)):
            self.answers.meet(node)
        return found

    def _is_drawn(self, node: ast.Call, names: frozenset[str]) -> bool:
        """Whether a call gives what is a matter of chance."""
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr in known.DRAWING_METHODS
        found = any(map(known.is_chance, names)) or (is_method and not names and not self._facts.targets(node))
        if found:
            self.answers.meet(node)
        return found

    def _trusts(self, node: ast.Call, names: frozenset[str]) -> bool:
        """Whether no clock and nothing of the system comes into a call."""
        given = arguments(node)
        if any(map(is_recorder, names)):
            given = given[:1]  # where a film is written changes nothing in the game
        elif names and names <= output.READERS | output.OPENS | output.OPENS_ARRAYS:
            given = given[1:]  # all read one file: the main process tells its name (MIG117)
        elif self._facts.targets(node) and not names and Role.MODEL not in roles(self._facts.values(node.func)):
            given = starred(node)  # the others are asked for where they are used
        if not all(map(self.same, given)):
            return False
        entered = {v.unit for part in (node.func, *node.args) for v in self._facts.values(part) if v.role in _FUNCTIONS}
        entered.update(self._facts.targets(node) if Role.MODEL not in roles(self._facts.values(node.func)) else ())
        if not all(self.gives_same(unit) for unit in entered if isinstance(unit, Function)):
            return False
        return bool(names) or not isinstance(node.func, ast.Attribute) or self.same(node.func.value)

    def _evaluates(self, node: ast.Call) -> bool:
        """Whether a call computes a loss, or runs a trained model that drops nothing out."""
        if roles(called := self._facts.values(node.func)) == {Role.CRITERION}:
            return True
        is_model = Role.MODEL in roles(called) <= {Role.MODEL, Role.CHECKPOINT, Role.UNKNOWN}
        is_trained = is_model and origins(called, Role.MODEL) <= self._trained
        return is_trained and (self._is_steady or self._modes.at(node) is Mode.EVAL)

    def gives_same(self, unit: Function) -> bool:
        """Whether a function of the project gives the same, for what all of its callers pass."""
        if isinstance(unit.node, ast.Lambda):
            return self.same(unit.node.body)
        returned = [node for node in self._facts.own(unit) if isinstance(node, (ast.Return, ast.Yield))]
        return all(self.same(node.value) and self.alike(node, deep=False) for node in returned)

    # --- numbers of items -------------------------------------------------------------------------------------------

    def even(self, node: ast.expr) -> bool:
        """Whether something has equally many items on all processes."""
        if self.trusting and Role.INSTANCE not in roles(self._facts.values(node)) and self.same(node):
            return True
        return self.answers.to((node, "even"), lambda: self._is_even(node))

    def _is_even(self, node: ast.expr) -> bool:
        values = self._facts.values(node)
        classes = {value.unit for value in values if value.role is Role.INSTANCE and isinstance(value.unit, Class)}
        if not all(map(self._gives_items_evenly, classes)):
            return False
        if self._facts.loaders(values) or roles(values) & {Role.FEED, Role.PARAMETERS}:
            return True  # a loader has equally many steps for each process, and all have the same model
        if isinstance(node, ast.Attribute) and node.attr == "param_groups":
            return True
        if isinstance(node, ast.Attribute) and node.attr in known.SIZE_ATTRIBUTES:
            return self.even(node.value)
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self.named(node, value=False)
        if isinstance(node, ast.Call):
            return self._is_even_call(node)
        if isinstance(node, ast.Subscript):
            return self.even(node.value) and self._is_even_index(node.slice)
        if isinstance(node, COMPREHENSIONS):
            return all(self.even(g.iter) and all(map(self.same, g.ifs)) for g in node.generators)
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return all(self._is_one(part) or self.same(part) or self.even(part) for part in parts)

    def _is_one(self, node: ast.expr) -> bool:
        """Whether an expression is one item, whatever it holds: a model, an optimizer."""
        found = roles(self._facts.values(node))
        return bool(found) and found <= _OBJECTS

    def _is_even_index(self, index: ast.expr) -> bool:
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        return all(
            self.same(part)
            or (not (isinstance(part, ast.Slice) or may_be_mask(self._sources, part)) and self.even(part))
            for part in parts
        )

    def _is_even_call(self, node: ast.Call) -> bool:
        names, given = called_by_name(self._facts, node), arguments(node)
        if names & known.PASSING or "itertools.count" in names:
            return all(self.even(part) for part in node.args[:1])
        if "builtins.zip" in names:
            return all(self.even(part) for part in node.args)
        if names & known.UNEVEN or self._is_own(node, names):
            return False
        if "builtins.range" in names or any(name.startswith("tqdm.") for name in names):
            return all(self.same(part) for part in node.args)
        if names:
            counts = all(self.same(part) or self.even(part) for part in given)
            return counts and (self.trusting or all(name.startswith((*known.PURE, *known.DRAWN)) for name in names))
        if targets := self._facts.targets(node):
            return all(map(self._gives_evenly, targets)) and all(self.same(p) or self.even(p) for p in hidden(node))
        found = roles(self._facts.values(node.func))
        if Role.MODEL in found and found <= {Role.MODEL, Role.TENSOR}:
            return all(self.same(part) or self.even(part) for part in given)
        if isinstance(node.func, ast.Attribute) and not roles(self._facts.receiver(node)) & {Role.MODEL, Role.INSTANCE}:
            return self.even(node.func.value) and all(self.same(part) or self.even(part) for part in given)
        return self.same(node)

    def _gives_items_evenly(self, cls: Class) -> bool:
        """Whether objects of a class of the project have, or yield, equally many items."""
        return all(map(self._gives_evenly, _members(cls, "__iter__", "__next__"))) and all(
            map(self.gives_same, _members(cls, "__len__"))
        )

    def _gives_evenly(self, unit: Function) -> bool:
        """Whether a function of the project gives, or yields, equally many items."""
        nodes = list(self._facts.own(unit))
        yields = [node for node in nodes if isinstance(node, (ast.Yield, ast.YieldFrom))]
        if yields:
            return all(self.alike(node, deep=False) for node in yields)
        if isinstance(unit.node, ast.Lambda):
            return self.even(unit.node.body)
        returned = [node for node in nodes if isinstance(node, ast.Return) and node.value is not None]
        return all(self.even(node.value) and self.alike(node, deep=False) for node in returned if node.value)

    def _is_filled_alike(self, node: ast.Name | ast.Attribute, *, value: _Asked) -> bool:
        """Whether what is put into a container is the same on all processes; without `value`, only how often."""
        for filling in self._fillings.of(node):
            if isinstance(node, ast.Name) and self._is_later(filling, node):
                continue
            if isinstance(value, Item) and leaves(filling, value.key):
                continue
            given = arguments(filling) if isinstance(filling, ast.Call) else []
            if isinstance(filling, (ast.Assign, ast.AugAssign)):
                if value and not (self.same(filling.value) and self.alike(filling, deep=True)):
                    return False
            elif not self.alike(filling, deep=True) or (value and not (self.trusting or given)):
                return False
            if value and not all(map(self.same, given)):
                return False
        return True

    def _asking(self, value: _Asked) -> Callable[[ast.expr], bool]:
        if value is PRESENCE:
            return partial(is_there_alike, self._facts, self)
        whole = self.same if value else self.even
        return lambda node: self.item(node, value) if isinstance(value, Item) else whole(node)

    def named(self, node: ast.Name | ast.Attribute, *, value: _Asked) -> bool:
        """Whether a name or attribute is the same; how many items it has, or what stands under one key of it."""
        given = self._name(node, value=value) if isinstance(node, ast.Name) else self._attribute(node, value=value)
        return given and (value is PRESENCE or self._is_filled_alike(node, value=value))

    # --- names ------------------------------------------------------------------------------------------------------

    def _name(self, node: ast.Name, *, value: _Asked) -> bool:
        facts = self._facts
        for above in facts.tree(node).up(node):
            if isinstance(above, COMPREHENSIONS):
                for generator in above.generators:
                    if any(isinstance(n, ast.Name) and n.id == node.id for n in ast.walk(generator.target)):
                        return self.same(generator.iter)
        unit: Unit = facts.unit(node)
        while True:
            bindings = self._bindings(unit, node.id)
            is_parameter = isinstance(unit, Function) and node.id in unit.parameter_names
            if bindings or is_parameter:
                break
            if isinstance(unit, Module):
                return self._elsewhere(node)
            assert isinstance(unit, Function)
            unit = unit.parent or unit.module
        before = [binding for binding in bindings if not self._is_later(binding.statement, node)]
        bindings = before if before or is_parameter else bindings
        given = all(self._bound(binding, value=value, deep=isinstance(unit, Module)) for binding in bindings)
        if given and is_parameter:
            assert isinstance(unit, Function)
            return self._parameter(unit, node.id, value=value)
        return given

    def _is_later(self, place: ast.AST, node: ast.AST) -> bool:
        """Whether a place of the same code is only ever run after a node is."""
        return self._facts.unit(place) is self._facts.unit(node) and self._facts.tree(node).is_later(place, node)

    def _bindings(self, unit: Unit, name: str) -> list[Binding]:
        if shares(unit, name):
            return []
        units = [unit, *self._facts.once(Sharing).get((unit, name), ())]
        return [b for u in units for b in self._facts.bindings_in(u) if b.target == name]

    def _elsewhere(self, node: ast.Name) -> bool:
        """A name of another file, of a library, or of Python."""
        given = self._sources.given(node)
        if given.expressions:
            return given.complete and all(map(self.same, given.expressions))
        found = roles(self._facts.values(node))
        plain = {Role.KNOWN, Role.FUNCTION, Role.CLASS, Role.MODULE, Role.HOLDER, Role.AVAILABLE, Role.TEXT}
        return self.trusting or (bool(found) and found <= plain)

    def _parameter(self, unit: Function, name: str, *, value: _Asked) -> bool:
        if unit.itself is not None and unit.itself.arg == name:
            return True
        calls = self.calls(unit)
        if any(call.handed is not None and call.handed.by not in callers.COMMAND_LINES for call in calls):
            return self.trusting
        ask = self._asking(value)
        by_key = partial(self.item, item=Item(name)) if value is True else ask  # what `**settings` has of that name
        given = ((call.node, each) for call in calls for each in may_pass(call, unit, name))
        return all((by_key if each in unpacked(call) else ask)(each) for call, each in given)

    def _attribute(self, node: ast.Attribute, *, value: _Asked) -> bool:
        facts = self._facts
        if names := facts.names(node):
            return not self._is_own(node, names)
        if node.attr in known.FORMS:
            return True
        if value and node.attr in known.SIZE_ATTRIBUTES and not roles(facts.values(node.value)) & {Role.HOLDER}:
            return self.even(node.value)
        owners = facts.values(node.value)
        found = list(self._fillings.setting(node))
        if not all(self._bound(binding, value=value, deep=True) for binding in found):
            return False
        if Role.HOLDER in roles(owners):
            return is_same_option(facts, node, self.same)
        classes = [v.unit for v in owners if v.role is Role.INSTANCE and isinstance(v.unit, Class)]
        if computed := [m.unit for cls in classes for m in cls.lookup(node.attr) if isinstance(m.unit, Function)]:
            return all(map(self.gives_same, computed))
        if not found and any(cls.sets(node.attr) for cls in classes):
            return False  # in a method that only Python calls
        if not found and is_same_field(facts, node, self.same):
            return True
        return bool(found) or ((self.trusting or Role.INSTANCE not in roles(owners)) and self.same(node.value))

    def _bound(self, binding: Binding, *, value: _Asked, deep: bool) -> bool:
        """Whether a statement gives its target the same (or as many), and equally often."""
        statement = binding.statement
        ask = self._asking(value)
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return True
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            parts = parts_given(self._facts, statement, binding.target)
            is_given = all(ask(part) and self.alike(place, deep=False) for part, place in parts)
        elif isinstance(statement, (ast.For, ast.AsyncFor)):
            is_given = all(map(self.same, given_in_rounds(self._facts, statement, binding.target)))
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            is_given = all(self.same(item.context_expr) for item in statement.items)
        else:
            is_given = self.trusting
        return is_given and self.alike(statement, deep=deep)

    def alike(self, node: ast.AST, *, deep: bool) -> bool:
        """Whether all processes run a node equally often; `deep`: in all, not for one call of its function."""
        key = (node, "deep" if deep else "here")
        return self.answers.to(key, lambda: next(self.parting(node, deep=deep), None) is None)

    def parting(self, node: ast.AST, *, deep: bool = True) -> Iterator[ast.AST]:
        """The tests and loops by which one process may come to a node, and another not."""
        return parting(self._facts, self, node, deep=deep)


def _is_expression(node: ast.AST) -> bool:
    return isinstance(node, (ast.expr, ast.keyword, ast.FormattedValue, ast.Slice))


def _members(cls: Class, *names: str) -> list[Function]:
    return [m.unit for name in names for m in cls.lookup(name) if isinstance(m.unit, Function)]
