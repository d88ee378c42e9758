"""Layers that a step may leave out: what a model's forward is given, draws, or finds in the batch decides about them.

    if random() < 0.1:                 ->  forward(self, x, label=None):
        label = None                           if label is not None:
    noise = model(x, label)                        x = x + self.label(label)

So it is with `x = self.a(x) if random() < 0.5 else self.b(x)`, `self.heads[task](x)` and `model(x, random() < 0.5)`.
DistributedDataParallel waits for the gradients of all layers, and each process may leave out others.
"""

from __future__ import annotations

import ast
import itertools
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import arguments, is_none, reads, root_name, walk, writes
from migrate.analysis.units import Class, Function
from migrate.analysis.widening import in_order
from migrate.programs.chance.calls import is_draw
from migrate.programs.prepare.routed import asks_batch
from migrate.programs.reach.callees import reached
from migrate.programs.reach.forwards import forwards_inside
from migrate.programs.reach.outsiders import units_of
from migrate.programs.training.gradients_off import without_gradients
from migrate.programs.values.sources import Sources, by_attribute, called_by_name, given_by_class, received

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Loop
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

#: What lists layers, or parameters, that a forward picks from.
_LISTS = frozenset(f"torch.nn.{name}" for name in "ModuleList ModuleDict ParameterList ParameterDict".split())
_LEAVES = (ast.Return, ast.Continue, ast.Break)


def chosen_layers(facts: Facts, loops: Loops, program: Program) -> Iterator[ast.AST]:
    """The tests and picks in models by which they run a layer in one step and not in another."""
    training = {loop.node for loop in program.training}
    for unit in units_of(facts, program):
        for node in facts.own(unit):
            if not isinstance(node, ast.Call) or without_gradients(facts, node):
                continue
            if origins(facts.values(node.func), Role.MODEL) & program.model_origins:
                if any(loop in training for loop in loops.around(node, unit)):
                    yield from _by_call(facts, node)


def _by_call(facts: Facts, call: ast.Call) -> Iterator[ast.AST]:
    """The tests and picks that one call of a model may meet."""
    for forward in forwards(facts, call):
        varying = {name for name in forward.parameter_names if _varies(facts, call, forward, name)}
        for test in tests(facts, forward):
            inside = [*itertools.chain(*both_sides(test))]
            if _asks_whether_there(test.test) in varying and _runs_layers(facts, forward, inside):
                yield test
        drawn = {name for name in forward.parameter_names if _is_drawn(facts, received(call, forward).get(name))}
        yield from _by_chance(facts, forward, drawn)
    by_chance = facts.once(_ByChance)
    for unit in reached(facts, forwards_inside(facts, call)):
        yield from by_chance[unit]


class _ByChance(dict["Unit", "tuple[ast.AST, ...]"]):
    """By unit, what `_by_chance` gives where its callers draw nothing: many calls come to the same forwards."""

    def __init__(self, facts: Facts) -> None:
        super().__init__()
        self._facts = facts

    def __missing__(self, unit: Unit) -> tuple[ast.AST, ...]:
        self[unit] = tuple(_by_chance(self._facts, unit, frozenset()))
        return self[unit]


def _by_chance(facts: Facts, unit: Unit, drawn: Collection[str]) -> Iterator[ast.AST]:
    """What goes by a draw of the unit's own, by what its caller has drawn, or by what the batch holds."""
    for test in tests(facts, unit):
        is_drawn = draws(facts, test.test) or not reads(test.test).isdisjoint(drawn)
        if (is_drawn or asks_batch(facts, test.test)) and _runs_layers(facts, unit, _decided(facts, test)):
            yield test
    for node in facts.own(unit):
        if isinstance(unit, Function) and _picks(facts, unit, node, drawn):
            yield node


def _picks(facts: Facts, unit: Function, node: ast.AST, drawn: Collection[str]) -> bool:
    """Whether layers are picked by chance: `self.heads[task]`, `self.layers[:depth]`, `random.choice(self.layers)`."""
    if isinstance(node, ast.Call):
        return is_draw(facts, node) and any(_holds_layers(facts, given, unit) for given in arguments(node))
    if not isinstance(node, ast.Subscript) or not _holds_layers(facts, node.value, unit):
        return False
    names = reads(node.slice)
    turned = (loop for loop in facts.tree(node).loops(node) if isinstance(loop, ast.For))
    of_turns = any(not names.isdisjoint(writes(loop.target)) and draws(facts, loop.iter) for loop in turned)
    return of_turns or draws(facts, node.slice) or not names.isdisjoint(drawn)


def _holds_layers(facts: Facts, node: ast.expr, unit: Function) -> bool:
    """Whether layers that an object lists are meant, as they stand or listed again: `list(self.layers)`."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not facts.targets(node):
        node = node.args[0]
    if unit.itself is None or not isinstance(node, ast.Attribute) or root_name(node) != unit.itself.arg:
        return False
    parts = (part for binding in given_by_class(facts, unit, node.attr) for part in ast.walk(binding.statement))
    return any(isinstance(part, ast.Call) and _LISTS & called_by_name(facts, part) for part in parts)


def forwards(facts: Facts, call: ast.Call) -> Iterator[Function]:
    """The project's own `forward`s that the call of a model runs."""
    for value in in_order(facts.values(call.func)):
        if value.role is Role.MODEL and isinstance(value.unit, Class):
            members = (member.unit for member in value.unit.lookup("forward"))
            yield from (unit for unit in members if isinstance(unit, Function))


def tests(facts: Facts, unit: Unit) -> Iterator[ast.If | ast.IfExp]:
    """The tests of a unit, statements and expressions."""
    yield from (node for node in facts.own(unit) if isinstance(node, (ast.If, ast.IfExp)))


def both_sides(test: ast.If | ast.IfExp) -> tuple[Sequence[ast.AST], Sequence[ast.AST]]:
    """What runs where a test holds, and what runs where it does not."""
    return ([test.body], [test.orelse]) if isinstance(test, ast.IfExp) else (test.body, test.orelse)


def _is_drawn(facts: Facts, given: ast.expr | None) -> bool:
    """Whether a parameter is given what is drawn anew for each step."""
    return given is not None and draws(facts, given)


def _asks_whether_there(test: ast.expr) -> str | None:
    """The name of which `if label is not None:` asks whether there is one."""
    while isinstance(test, ast.UnaryOp):
        test = test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and is_none(test.comparators[0]):
        test = test.left
    return test.id if isinstance(test, ast.Name) else None


def _varies(facts: Facts, call: ast.Call, forward: Function, name: str) -> bool:
    """Whether a call gives a parameter something in one step and nothing in another."""
    given = received(call, forward).get(name)
    loops = list(facts.tree(call).loops(call))
    if isinstance(given, ast.IfExp):
        return _is_emptied(facts, given, loops)
    if not isinstance(given, ast.Name):
        return False
    return any(_is_emptied(facts, each, loops) for each in facts.once(Sources).given(given).expressions)


def _is_emptied(facts: Facts, value: ast.expr, loops: list[Loop]) -> bool:
    """Whether a name is given nothing under a condition that is another one in each round of a loop."""
    if isinstance(value, ast.IfExp):
        return (is_none(value.body) or is_none(value.orelse)) and _changes(facts, value.test, loops)
    above = [node for node in facts.tree(value).up(value) if isinstance(node, ast.If)] if is_none(value) else []
    return any(_changes(facts, node.test, loops) for node in above)


def _changes(facts: Facts, test: ast.expr, loops: list[Loop]) -> bool:
    """Whether a condition is drawn, or goes by what a loop sets."""
    set_there = {name for loop in loops for name in writes(loop)}
    return draws(facts, test) or any(isinstance(n, ast.Name) and n.id in set_there for n in ast.walk(test))


def draws(facts: Facts, test: ast.expr) -> bool:
    """Whether an expression draws, or reads what was drawn right for it: `model.deep = random() < 0.5`."""
    drawn: list[ast.AST] = []
    for node in walk(test):
        if isinstance(node, ast.Name):
            drawn += facts.once(Sources).given(node).expressions
        elif isinstance(node, ast.Attribute):  # of whatever object: that of a forward is not always known
            bindings = facts.once(by_attribute).get(node.attr, ())
            drawn += (binding.statement for binding in bindings if isinstance(binding.statement, ast.Assign))
    calls = [n for each in (test, *drawn) for n in walk(each).of(ast.Call)]
    return any(is_draw(facts, call) for call in calls)


def _decided(facts: Facts, test: ast.If | ast.IfExp) -> Sequence[ast.AST]:
    """What a test decides about: its branches, and what comes after one that leaves."""
    inside = [*itertools.chain(*both_sides(test))]
    if isinstance(test, ast.IfExp) or not any(isinstance(statement, _LEAVES) for statement in inside):
        return inside
    block = facts.tree(test).block(test)
    return [*inside, *block[block.index(test) + 1 :]]


def _runs_layers(facts: Facts, unit: Unit, statements: Sequence[ast.AST], depth: int = 3) -> bool:
    """Whether something that the object holds is called, as `self.label(x)` or `for layer in self.layers:`."""
    if not isinstance(unit, Function) or unit.owner is None or unit.itself is None:
        return False
    held = {unit.itself.arg, *_taken_from(facts, unit, unit.itself.arg)}
    for call in (node for each in statements for node in ast.walk(each) if isinstance(node, ast.Call)):
        methods = [target for target in facts.targets(call) if not isinstance(target.node, ast.Lambda)]
        if not methods and root_name(call.func) in held:
            return True
        if depth and any(_runs_layers(facts, each, each.body, depth - 1) for each in methods):
            return True
    return False


def _taken_from(facts: Facts, unit: Unit, itself: str) -> Iterator[str]:
    """The names of what a loop over something that the object holds goes through, and of items: `self.layers[i]`."""
    for node in facts.own(unit):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and root_name(node.value) == itself:
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        if isinstance(node, ast.For) and any(isinstance(n, ast.Name) and n.id == itself for n in ast.walk(node.iter)):
            yield from (name.id for name in ast.walk(node.target) if isinstance(name, ast.Name))
