"""What a function changes that others see: objects that it did not make itself, names of others, the random stream.

What it sets for its process, such as a seed, and that it ends it, is seen by all that comes after.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import output, training
from migrate.analysis.known import same as known
from migrate.analysis.known.tensors import is_in_place
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import arguments, root_name, walk
from migrate.analysis.units import Function
from migrate.programs.chance.calls import is_draw
from migrate.programs.reach.callees import Reaching
from migrate.programs.reach.outsiders import is_inside_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts

_MUTATORS = frozenset(
    """append extend insert pop remove clear update setdefault step zero_grad load_state_dict train eval add sort
    put send seed manual_seed accumulate summarize reverse discard appendleft extendleft popleft popitem
    register_buffer register_parameter register_module add_module reset_running_stats""".split()
)
#: Methods by which a model changes itself, and tensors do not.
_OF_MODELS = frozenset("to cuda cpu half float double bfloat16".split())
_SETTING = frozenset(f"builtins.{name}" for name in "setattr delattr exec eval".split())

_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
#: Functions whose result nobody else has yet.
_MAKING = (
    frozenset(f"builtins.{name}" for name in "list dict set bytearray sorted".split())
    | {"collections.OrderedDict", "collections.defaultdict", "collections.Counter", "collections.deque"}
    | {"copy.copy", "copy.deepcopy", "PIL.Image.new", "glob.glob", "os.listdir", "re.findall"}
    | {f"{package}.{name}" for package in ("numpy", "torch") for name in "zeros ones empty full stack".split()}
    | {f"{package}.{name}_like" for package in ("numpy", "torch") for name in "zeros ones empty full".split()}
    | {"numpy.array", "numpy.concatenate", "numpy.tile", "torch.cat"}
)


class Effects:
    """Questions about the effects of functions."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._known: dict[tuple[Function, bool], tuple[bool, tuple[Function, ...]]] = {}
        self._changing = Reaching(lambda unit: self._looked_into(unit)[0], lambda unit: self._looked_into(unit)[1])

    def changes(self, unit: Function, *, own: bool = False) -> bool:
        """Whether a function changes an object that it did not make itself; with `own`, other than its own."""
        if not own or not self._changing(unit):
            return self._changing(unit)
        waiting, seen = [(unit, True)], {(unit, True), (unit, False)}
        while waiting:
            each, is_own = waiting.pop()
            does, entered = self._looked_into(each, own=is_own)
            if does:
                return True
            new = dict.fromkeys((target, is_own and target.owner is each.owner) for target in entered)
            waiting += [found for found in new if found not in seen]
            seen |= new.keys()
        return False

    def _looked_into(self, unit: Function, *, own: bool = False) -> tuple[bool, tuple[Function, ...]]:
        """Whether a function changes something by itself, and else the functions that it may enter."""
        if (unit, own) not in self._known:
            does = self._does_change(unit, own=own)
            self._known[unit, own] = does, () if does else tuple(self._entered(unit))
        return self._known[unit, own]

    def _entered(self, unit: Function) -> Iterator[Function]:
        for node in self._facts.own(unit):
            if isinstance(node, ast.Call):
                yield from (*self._facts.targets(node), *self._handed(node), *self._of_layers(node))

    def _does_change(self, unit: Function, *, own: bool) -> bool:
        nodes = self._facts.own(unit)
        fresh = {
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and self._is_made(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if unit.owner is not None and (own or unit.sets_up):
            fresh |= {parameter.arg for parameter in unit.positional[:1]}  # what it sets up is being made
        shared = {name for n in nodes if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        for node in nodes:
            if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
                if root_name(node) not in fresh:
                    return True
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                if node.id in shared:
                    return True
            elif isinstance(node, ast.Call):
                if self._is_mutator(node, fresh) or is_draw(self._facts, node):
                    return True  # a drawn number moves the random stream on
                called = self._facts.called(node)
                if called & (known.SETTING | known.EXITS) or any(n.startswith(training.CHANGES_LAYERS) for n in called):
                    return True
        return False

    def moves(self, node: ast.expr) -> bool:
        """Whether what is computed moves the random stream on, or changes something that others see."""
        return any(
            isinstance(inner, ast.Call)
            and (is_draw(self._facts, inner) or any(self.changes(t) for t in self._facts.targets(inner)))
            for inner in walk(node)
        )

    def sets(self, node: ast.expr) -> bool:
        """Whether an expression also sets a name, waits, or takes something out of what others go on with."""
        return any(
            isinstance(inner, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom))
            or (isinstance(inner, ast.Call) and (self._is_mutator(inner, set()) or self._takes(inner)))
            for inner in walk(node)
        )

    def _takes(self, call: ast.Call) -> bool:
        return "builtins.next" in self._facts.called(call)

    def _handed(self, call: ast.Call) -> Iterator[Function]:
        """The functions that a call is handed and runs: `net.apply(init_weights)`."""
        for argument in arguments(call):
            yield from (value.unit for value in self._facts.values(argument) if isinstance(value.unit, Function))

    def _of_layers(self, call: ast.Call) -> Iterator[Function]:
        """The methods that a call on a layer may enter: `for layer in self.modules(): layer.prune(threshold)`."""
        func = call.func
        if not isinstance(func, ast.Attribute) or self._facts.targets(call) or self._facts.names(func.value):
            return
        values = self._facts.values(func.value)
        if not values or Role.PARAMETERS in roles(values):
            named = (unit for unit in self._facts.functions if unit.name == func.attr)
            yield from (unit for unit in named if is_inside_model(self._facts, unit))

    def _is_made(self, node: ast.expr) -> bool:
        """Whether an expression makes an object: `[]`, `np.zeros(size)`, `tf.HistogramProto()`."""
        if not isinstance(node, ast.Call):
            return isinstance(node, _DISPLAYS)
        called = self._facts.called(node)
        is_instance = not arguments(node) and all(name.rpartition(".")[2][:1].isupper() for name in called)
        return bool(called & _MAKING) or (bool(called) and is_instance)

    def _is_mutator(self, node: ast.Call, fresh: set[str]) -> bool:
        func = node.func
        if self._facts.called(node) & _SETTING:
            return not node.args or root_name(node.args[0]) not in fresh
        if not isinstance(func, ast.Attribute) or self._facts.targets(node):
            return False
        in_place = is_in_place(func.attr)
        if self._facts.names(func.value):  # of a library: `nn.init.zeros_(layer.bias)`
            return in_place and bool(node.args) and root_name(node.args[0]) not in fresh
        if root_name(func.value) in fresh:
            return False
        if func.attr in _OF_MODELS:
            return Role.MODEL in roles(self._facts.values(func.value))
        return in_place or func.attr in _MUTATORS


def tells_name(facts: Facts, unit: Function) -> bool:
    """Whether a function makes up a name and gives something back: other scripts may go on with it, on all."""
    own = facts.own(unit)
    gives = any(isinstance(node, ast.Return) and node.value is not None for node in own)
    makes_up = gives and any(isinstance(n, ast.Call) and facts.called(n) & output.MADE_UP for n in own)
    return makes_up and not is_inside_model(facts, unit)  # which stay as they are, and tell nobody
