"""What layers run beside what they compute: hooks of a program, and the methods of its own models.

    activations = {}
    def keep(module, given, output):                 class Net(nn.Module):
        activations["mean"] += output.mean()             def forward(self, x):
    layer.register_forward_hook(keep)                        self.means.append(x.mean().item())

Each process puts there what it makes of its own batches.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import argument_at, is_stored, reads, targets_of, walk, writes
from migrate.analysis.units import Class, Function
from migrate.programs.reach.forwards import is_own_object, with_own_methods
from migrate.programs.values.ended import is_only_below
from migrate.programs.values.hooks_for_once import is_for_once
from migrate.programs.values.kept import FILLING, filled, place_of, root_of
from migrate.programs.values.readers import Loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from migrate.analysis.facts import Facts

FORWARD = ("register_forward_hook", "register_forward_pre_hook")
BACKWARD = ("register_full_backward_hook", "register_backward_hook", "register_hook")

_FORM = frozenset("shape size device dtype ndim dim".split())
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign)


@dataclass(frozen=True, slots=True)
class Filling:
    """A statement or a call that puts something of a batch into a place that outlasts it."""

    node: ast.AST
    place: str  # as it is written there: `activations['mean']`, `self.means`
    grows: bool  # else it takes the place of what was there


def hooked(facts: Facts, ran: Collection[ast.AST], *names: str) -> Iterator[Filling]:
    """What the hooks of a program fill while some code runs: not those that are put in after it or beside it."""
    for use in facts.method_calls(*names):
        if is_only_below(facts, use.node, ran) or is_for_once(facts, use.node, ran):
            continue
        hook = argument_at(use.node, 0, "hook")
        if isinstance(hook, ast.Lambda):
            yield from fillings(hook, {each.arg for each in hook.args.args})
        elif hook is not None:
            for unit in {value.unit: None for value in facts.values(hook) if isinstance(value.unit, Function)}:
                yield from filled_by(unit)


def filled_by(unit: Function) -> Iterator[Filling]:
    """What a function fills with what it is given, or makes of that."""
    me = {unit.itself.arg} if unit.itself is not None else set()
    yield from fillings(unit.node, {*unit.parameter_names} - me)


def fillings(code: ast.AST, given: set[str]) -> Iterator[Filling]:
    """The same for code that is handed something under some names."""
    nodes = list(walk(code))
    shared = {name for node in nodes if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and is_stored(node)} - shared
    own = given | stored
    made, computed = _made_of(nodes, given, reads), _made_of(nodes, given, _content)
    for node in nodes:
        for target, value, grows in _put(node):
            if value is not None and not (made if grows else computed).isdisjoint(reads(value)):
                is_item = isinstance(target, (ast.Attribute, ast.Subscript)) or isinstance(node, ast.Call)
                for place in place_of(target):
                    if root_of(place) not in own if is_item else place in shared:
                        yield Filling(node, place, grows)


def _made_of(nodes: list[ast.AST], given: set[str], read_by: Callable[[ast.AST], set[str]]) -> set[str]:
    """Some names, and those that are given something of what they hold."""
    pairs = [(writes(node), read_by(node.value)) for node in nodes if isinstance(node, _ASSIGNMENTS) and node.value]
    pairs += [(writes(node.target), read_by(node.iter)) for node in nodes if isinstance(node, (ast.For, ast.AsyncFor))]
    found = set(given)
    while more := {name for made, read in pairs if read & found for name in made} - found:
        found |= more
    return found


def _content(node: ast.AST) -> set[str]:
    """The names that are read for what they hold, and not for how large that is: `x.shape`, `x.size(0)`, `len(x)`."""
    asked = {
        name
        for inner in walk(node)
        if (isinstance(inner, ast.Attribute) and inner.attr in _FORM)
        or (isinstance(inner, ast.Call) and ast.unparse(inner.func) == "len")
        for name in walk(inner)
    }
    return {n.id for n in walk(node).of(ast.Name) if isinstance(n.ctx, ast.Load) and n not in asked}


def _put(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None, bool]]:
    """What a statement or a call puts something into, with that, and whether it is added to what is there."""
    if isinstance(node, ast.AugAssign):
        yield node.target, node.value, True
    elif isinstance(node, (ast.Assign, ast.AnnAssign)):
        goes_on = node.value is not None and any(ast.unparse(to) in ast.unparse(node.value) for to in targets_of(node))
        yield from ((to, node.value, goes_on) for to in targets_of(node))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in FILLING:
        yield from ((filled(node), each, True) for each in node.args)


def kept_by(facts: Facts, forward: Function) -> Iterator[tuple[Filling, Function]]:
    """What a forward, or another method of its object that it calls, puts into attributes of that object."""
    for unit in with_own_methods(facts, forward):
        me = unit.itself.arg if unit.itself is not None else None
        yield from ((each, unit) for each in filled_by(unit) if root_of(each.place) == me != each.place)


def read_of(facts: Facts, unit: Function, filling: Filling) -> Iterator[ast.expr]:
    """Where code reads what a method of a model keeps in an attribute, but for what the model runs itself."""
    name = filling.place.partition("[")[0].split(".")[1]
    forwards = unit.owner.lookup("forward") if isinstance(unit.owner, Class) else ()
    own = (member.unit for member in forwards if isinstance(member.unit, Function))
    inside = {unit, *(method for forward in own for method in with_own_methods(facts, forward))}
    for node in facts.once(Loaded).attributes.get(name, ()):
        if facts.unit(node) not in inside and _is_of_model(facts, unit, node):
            if not is_stored(node) and not fills(facts, node):
                yield node


def fills(facts: Facts, node: ast.AST) -> bool:
    """`means.append(x)`, `means.clear()`, `means[k] = x`: what is there is not asked for."""
    above = facts.tree(node).parents.get(node)
    if isinstance(above, ast.Subscript):
        return above.value is node and is_stored(above)
    return isinstance(above, ast.Attribute) and (above.attr in FILLING or above.attr == "clear")


def _is_of_model(facts: Facts, unit: Function, node: ast.Attribute) -> bool:
    """Whether an attribute is one of a model, or of the object of another method of a model's class."""
    reader = facts.unit(node)
    if isinstance(reader, Function) and isinstance(unit.owner, Class) and is_own_object(reader, node.value):
        return isinstance(reader.owner, Class) and reader.owner.is_related(unit.owner)
    return Role.MODEL in roles(facts.values(node.value))
