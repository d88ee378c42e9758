"""Where a program that was written without any device would meet its prepared objects with tensors on the CPU.

On a GPU its model, the batches of its prepared loaders and what is computed from them are there; whatever else it makes
stays on the CPU. The tour goes through all of its code, and stops nowhere but finds each place where both meet.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from migrate.analysis.known import tensors
from migrate.analysis.known.models import WITH_WEIGHTS
from migrate.analysis.known.table import Makes
from migrate.analysis.roles import FROM_LOADER, ROWS, Role, origins, roles
from migrate.analysis.syntax import arguments, line_of
from migrate.analysis.units import Function, Module
from migrate.programs.device.examples import runs_example
from migrate.programs.device.walk import Walk
from migrate.programs.device.whereabouts import Need, Reason, Where, elements, joined, names_device, outside
from migrate.programs.reach.outsiders import is_inside_model, units_of
from migrate.programs.values.takes import taken

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.roles import Values
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program

#: Made in a loop of such a program, these are made on the accelerator's device.
FACTORIES = frozenset(
    f"torch.{name}" for name in "zeros ones full empty rand randn randint randperm arange linspace eye tensor".split()
)
OLD_FACTORIES = frozenset(f"torch.{name}Tensor" for name in ("", "Float", "Long", "Double", "Int", "Byte", "Bool"))
#: What these give is no tensor, or told by what they were given.
_PLAIN = ("builtins.", "math.", *tensors.HOST_PREFIXES)
_OF_NUMPY = frozenset({"torch.from_numpy", "torch.as_tensor"})
_PLACED = frozenset({Where.RAW, Where.DEVICE})
_TENSORS = _PLACED | {Where.HOST, Where.NUMPY}
#: Of these most have no weights, and those that have are known by their names.
_PLAIN_LAYERS = ("torch.nn.", "torchvision.ops.")
#: Metrics of these count in tensors of their own, where they were made.
_COUNTING = ("torchmetrics.", "torcheval.")
_KEPT_BY_MODEL = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer"})


def follows(facts: Facts, loops: Loops, program: Program, call: ast.Call, unit: Unit) -> bool:
    """Whether a call makes a tensor in a loop over batches, where it follows them to the accelerator's device."""
    if Role.TENSOR not in roles(facts.values(call)) or names_device(call):
        return False
    return bool(facts.called(call) & (FACTORIES | OLD_FACTORIES)) and _is_in_loop(loops, program, call, unit)


def _is_in_loop(loops: Loops, program: Program, call: ast.Call, unit: Unit) -> bool:
    mine = {loop.node for loop in (*program.training, *program.evaluation)}
    return any(loop in mine for loop in loops.around(call, unit))


def shown(facts: Facts, node: ast.expr) -> Values:
    """The values of a tensor that is given to NumPy: `loss.data` is `loss`."""
    if isinstance(node, ast.Attribute) and node.attr == "data" and roles(facts.values(node.value)) & FROM_LOADER:
        return facts.values(node.value)
    return facts.values(node)


def strangers(facts: Facts, loops: Loops, program: Program, placed: Collection[ast.AST]) -> list[ast.expr]:
    """Where tensors on the CPU meet what is prepared, in source order; `placed`: where prepared loaders were made."""
    units = units_of(facts, program)
    following = {
        id(use.node) for use in facts.calls if use.unit in units and follows(facts, loops, program, use.node, use.unit)
    }
    dealt = {
        id(use.node)
        for use in facts.calls
        if use.unit in units and (of := taken(facts, use.node)) and of <= set(placed)
        if _is_in_loop(loops, program, use.node, use.unit)
    }
    entered: set[Function] = set()
    found: list[Need] = []
    prepared = _with_parts(facts, program.model_origins)
    ordered = [unit for unit in facts.units if unit in units]
    for unit in sorted(ordered, key=lambda unit: unit not in (program.start, program.home)):
        if isinstance(unit, Function) and (unit in entered or is_inside_model(facts, unit) or not facts.callers(unit)):
            continue
        tour = Tour(
            facts,
            frozenset(placed),
            makes_on_device=True,
            needs=found,
            following=frozenset(following),
            dealt=frozenset(dealt),
            prepared=prepared,
            entered=entered,
            last_made=_last_made(program),
        )
        tour.along(unit)
    nodes = [*(need.node for need in found), *_in_models(facts, program, following)]
    return sorted(dict.fromkeys(nodes), key=lambda node: (facts.file(node).path, node.lineno))


def _last_made(program: Program) -> ast.stmt | None:
    """The last statement of the home that makes something to be prepared."""
    named = (each for each in (*program.models, *program.optimizers) if each.unit is None)
    made = (statement for each in named for statement in each.statements)
    return max(made, key=line_of, default=None)


@dataclass(slots=True)
class Tour(Walk):
    """A walk on which prepared objects are on the device, and everything else that is a tensor on the CPU.

    Its methods call `super(Tour, self)`: with slots, `dataclass` makes the class anew, and `super()` has the first one.
    """

    following: frozenset[int] = frozenset()  # the calls (by `id`) whose tensors are made on the device
    dealt: frozenset[int] = frozenset()  # the calls (by `id`) of `next` that take batches of prepared loaders
    prepared: frozenset[ast.AST] = frozenset()  # where the models were made, and the parts of these
    entered: set[Function] = field(default_factory=set)
    last_made: ast.stmt | None = None  # of what is prepared: above it, nothing is yet

    def along(self, unit: Unit) -> None:
        """Go through the code of a unit."""
        if isinstance(unit, Function):
            self.entered.add(unit)
        self._run(unit.tree.body if isinstance(unit, Module) else unit.body)

    def of(self, node: ast.expr) -> Where:
        """Where the value of an expression is; what looks like no tensor is asked again."""
        place = super(Tour, self).of(node)
        if place is Where.NOWHERE and isinstance(node, (ast.Call, ast.Subscript)):
            values = self.facts.values(node)
            if roles(values) & FROM_LOADER and roles(values) & ROWS:
                return Where.RAW if self.facts.loaders(values) <= self.loaders else Where.HOST
        return place

    def _element(self, iterable: ast.expr) -> Where:
        if loaders := self.facts.loaders(self.facts.values(iterable)):
            return Where.RAW if loaders <= self.loaders else Where.HOST
        return self.of(iterable)

    def _met(self, places: Sequence[Where], node: ast.expr) -> Where:
        if _PLACED & set(places) and Where.HOST in places:
            self.needs.append(Need(node, Reason.MIXED))
        return joined(places)

    def _item(self, node: ast.Subscript) -> Where:
        base, index = self.of(node.value), self.of(node.slice)
        if index in _PLACED and base in (Where.HOST, Where.UNKNOWN, Where.NUMPY):
            self.needs.append(Need(node, Reason.MIXED))
        return base

    def _need(self, node: ast.expr, reason: Reason) -> None:
        if reason is Reason.PINNED:
            self.needs.append(Need(node, reason))

    def _call(self, node: ast.Call) -> Where:
        called = self.facts.values(node.func)
        if Role.CRITERION in roles(called) and not any(value.unit for value in called):
            self._given(node)
            if any(_is_weighted(value.origin) for value in called):
                self.needs.append(Need(node, Reason.MIXED))
            return Where.DEVICE
        if (
            isinstance(node.func, ast.Attribute)
            and node.func.attr == "backward"
            and roles(self.facts.values(node.func.value))
        ):
            self._given(node)  # the gradient that it starts from
        self._measured(node)
        self._run_with_examples(node)
        return super(Tour, self)._call(node)

    def _measured(self, node: ast.Call) -> None:
        """A metric counts on the CPU, where it was made."""
        metric = node.func.value if isinstance(node.func, ast.Attribute) else node.func
        if any(v.role is Role.METRIC and v.name.startswith(_COUNTING) for v in self.facts.values(metric)):
            if any(self.of(each) in _PLACED for each in elements(node.args)):
                self.needs.append(Need(node, Reason.MIXED))

    def _run_with_examples(self, node: ast.Call) -> None:
        """`writer.add_graph(model, x)`: it runs the model with what stands beside it."""
        given = elements(arguments(node))
        if not any(origins(self.facts.values(each), Role.MODEL) & self.prepared for each in given):
            return
        if runs_example(self.facts, node) and not self._is_early(node) and Where.HOST in map(self.of, given):
            self.needs.append(Need(node, Reason.MIXED))

    def _is_early(self, node: ast.Call) -> bool:
        last = self.last_made
        return last is not None and self.facts.unit(last) is self.facts.unit(node) and line_of(node) < line_of(last)

    def _takes_batch(self, node: ast.Call) -> bool:
        return id(node) in self.dealt  # any other may be taken before the loader is prepared

    def _of_model(self, node: ast.Call, given: list[ast.expr]) -> Where:
        if self._is_left_behind(node.func):
            return self._met([Where.HOST, *(self.of(each) for each in elements(given))], node)
        self._given(node)
        return Where.DEVICE

    def _is_left_behind(self, function: ast.expr) -> bool:
        """Whether a model that is not prepared has weights, which stay where they were made: a teacher, a copy."""
        models = origins(self.facts.values(function), Role.MODEL)
        if not models or models & self.prepared:
            return False
        return any(
            isinstance(made, ast.Call) and any(map(self._has_weights, self.facts.called(made)))
            for made in _with_parts(self.facts, models)
        )

    def _has_weights(self, name: str) -> bool:
        row = self.facts.row(name)
        is_architecture = isinstance(row, Makes) and row.role is Role.MODEL and not name.startswith(_PLAIN_LAYERS)
        return name in WITH_WEIGHTS or is_architecture

    def _given(self, node: ast.Call) -> None:
        """What a model or a loss function is given must be known to be on the device."""
        given = elements(arguments(node))
        if {Where.HOST, Where.UNKNOWN, Where.NUMPY} & {self.of(each) for each in given}:
            self.needs.append(Need(node, Reason.MIXED))

    def _of_library(self, node: ast.Call, names: frozenset[str], given: list[ast.expr]) -> Where:
        place = super(Tour, self)._of_library(node, names, given)
        if place is Where.NOWHERE and any(name.startswith("torch.load") for name in names):
            return Where.UNKNOWN
        if any(name.startswith(tensors.HOST_PREFIXES) for name in names):
            for each in elements(given):
                self._to_numpy(each, ROWS)
        return place

    def _of_another(self, node: ast.Call, names: frozenset[str], places: list[Where]) -> Where:
        place = super(Tour, self)._of_another(node, names, places)
        if any(name.startswith(tensors.HOST_PREFIXES) for name in names) and _TENSORS & set(places):
            return Where.NUMPY  # also `np.clip(x, 0, 1)` of a tensor, which is one again, on the CPU
        is_plain = all(name.startswith(_PLAIN) for name in names)
        return outside(self.facts, node) if place is Where.NOWHERE and not is_plain else place

    def _of_factory(self, node: ast.Call, places: list[Where]) -> Where:
        return Where.RAW if id(node) in self.following else Where.HOST

    def _brought(self, node: ast.Call, method: str, place: Where, places: list[Where]) -> Where | None:
        if method == "numpy" and isinstance(node.func, ast.Attribute):
            self._to_numpy(node.func.value, FROM_LOADER)
        return super(Tour, self)._brought(node, method, place, places)

    def _to_numpy(self, node: ast.expr, computed: frozenset[Role]) -> None:
        """Tensors on the device go to NumPy by way of the CPU where it is seen that they are there."""
        found = roles(shown(self.facts, node))
        if self.of(node) in _PLACED and not (found and found <= {*computed, Role.TENSOR}):
            self.needs.append(Need(node, Reason.NUMPY))


def _with_parts(facts: Facts, models: Collection[ast.AST]) -> frozenset[ast.AST]:
    """Models with what they hold, and what they were given when they were made: `nn.Sequential(encoder, head)`."""
    found: set[ast.AST] = set()
    new = set(models)
    while new:
        found |= new
        given = [
            facts.values(argument)
            for model in new
            if isinstance(model, ast.Call)
            for argument in elements(arguments(model))
        ]
        inner = facts.parts(new).union(*(origins(v, Role.MODEL) | facts.inside(v, Role.MODEL) for v in given))
        new = inner - found
    return frozenset(found)


def _is_weighted(origin: ast.AST | None) -> bool:
    """Whether a loss function was made with weights, which are tensors of their own."""
    if not isinstance(origin, ast.Call):
        return False
    named = [keyword.value for keyword in origin.keywords if keyword.arg in ("weight", "pos_weight", None)]
    return any(not isinstance(given, ast.Constant) for given in (*origin.args, *named))


def _in_models(facts: Facts, program: Program, following: Collection[int]) -> Iterator[ast.expr]:
    """Tensors that the methods of models make beside their input, or that models keep and do not move with them."""
    modules = facts.imported(program.module) | {program.module} | {loop.unit.module for loop in program.training}
    for unit in facts.functions:
        if unit.owner is None or unit.module not in modules or not is_inside_model(facts, unit):
            continue
        for node in facts.own(unit):
            if not unit.sets_up:
                if isinstance(node, ast.Call) and id(node) not in following and _is_made(facts, node):
                    yield node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
                made = {v.origin for v in facts.values(node.value) if v.role is Role.TENSOR}
                if any(isinstance(o, ast.Call) and not facts.called(o) & _KEPT_BY_MODEL for o in made):
                    yield node.value


def _is_made(facts: Facts, node: ast.Call) -> bool:
    if names_device(node):
        return False
    if not facts.was_run(facts.unit(node)):
        return ast.unparse(node.func) in FACTORIES | OLD_FACTORIES | _OF_NUMPY
    names = facts.called(node)
    if names & _KEPT_BY_MODEL or Role.TENSOR not in roles(facts.values(node)):
        return False
    is_torch = bool(names) and all(name.startswith("torch.") for name in names)
    return is_torch and any(isinstance(facts.row(name), Makes) for name in names)
