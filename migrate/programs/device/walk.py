"""Where the tensors of a loop are at each of its steps: a walk through its body, as the original runs on a GPU.

A batch comes from its loader on the CPU and stays there until the program moves it. What the program does with it until
then decides whether its loader may bring it to the device at once.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from migrate.analysis.known import operations, tensors
from migrate.analysis.known.table import Makes
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import FUNCTIONS, arguments
from migrate.analysis.texts import text_of
from migrate.analysis.units import Class, Function
from migrate.programs.device.devices import is_move, names_cpu
from migrate.programs.device.tensor_types import asks_for_cpu, casts_to_cpu
from migrate.programs.device.whereabouts import (
    Handed,
    Need,
    Reason,
    Where,
    elements,
    is_own_model,
    joined,
    names_device,
    of_self,
    outside,
    passed,
    unpacked,
)
from migrate.programs.values.takes import taken

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact

DEPTH = 5  # of functions that are followed


@dataclass(slots=True)
class Walk:
    """One way through a loop body and the functions that it calls."""

    facts: Facts
    loaders: frozenset[ast.AST]
    makes_on_device: bool  # tensors made in the loop will be made on the device: the program knows none yet
    needs: list[Need] = field(default_factory=list)
    casts: list[ast.Call] = field(default_factory=list)  # of batches, to types that are on the CPU
    split: frozenset[ast.AST] = frozenset()  # where the models were made that DataParallel is around
    handed: list[Handed] = field(default_factory=list)  # to these
    names: dict[str, Where] = field(default_factory=dict)  # by text: "x", "batch['x']", "self.real"
    returned: list[Where] = field(default_factory=list)
    inside: tuple[Function, ...] = ()
    known: dict[Hashable, tuple[Where, dict[str, Where]]] = field(default_factory=dict)  # see `_entered`

    def through(self, loop: LoopFact) -> Walk:
        """The walk itself, once it is through the body of a loop over a loader, or that takes batches from one."""
        for _ in range(2):  # what one batch leaves behind meets the next one
            if not isinstance(loop.node, ast.While):
                self._bind(loop.node.target, self._element(loop.node.iter), loop.node.iter)
            self._run(loop.node.body)
        return self

    def along(self, unit: Function) -> None:
        """Go through the code of a function."""
        self._run(unit.body)

    def _element(self, iterable: ast.expr) -> Where:
        return Where.RAW if self.facts.loaders(self.facts.values(iterable)) & self.loaders else self.of(iterable)

    # --- statements -------------------------------------------------------------------------------------------------

    def _run(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            place = self.of(node.value)
            for target in node.targets:
                self._assign(target, node.value, place)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._bind(node.target, self.of(node.value), node.value)
        elif isinstance(node, ast.AugAssign):
            self._bind(node.target, self._met([self.of(node.target), self.of(node.value)], node.value), node.value)
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            for _ in range(2):
                self._bind(node.target, self._element(node.iter), node.iter)
                self._run(node.body)
            self._run(node.orelse)
        elif isinstance(node, ast.If):
            self._branch(node)
        elif isinstance(node, ast.Return):
            self.returned.append(self.of(node.value) if node.value is not None else Where.NOWHERE)
        elif not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            self._other(node)

    def _other(self, node: ast.stmt) -> None:
        """Expressions first, then the blocks of `with`, `try`, `while`."""
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                self.of(part)
            elif isinstance(part, ast.withitem):
                place = self.of(part.context_expr)
                if part.optional_vars is not None:
                    self._bind(part.optional_vars, place, part.context_expr)
            elif isinstance(part, ast.stmt):
                self._statement(part)
            elif isinstance(part, (ast.ExceptHandler, ast.match_case)):
                self._run(part.body)

    def _branch(self, node: ast.If) -> None:
        """Both ways; after `if use_cuda: x = x.cuda()` it is moved."""
        self.of(node.test)
        before = dict(self.names)
        self._run(node.body)
        after, self.names = self.names, before
        self._run(node.orelse)
        self.names |= {name: joined((place, self.names.get(name, place))) for name, place in after.items()}

    def _assign(self, target: ast.expr, value: ast.expr, place: Where) -> None:
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List)):
            if len(target.elts) == len(value.elts):
                places = [self.of(each) for each in value.elts]
                for one, other, each in zip(target.elts, value.elts, places, strict=True):
                    self._bind(one, each, other)
                return
        self._bind(target, place, value)

    def _bind(self, target: ast.expr, place: Where, value: ast.expr) -> None:
        target = target.value if isinstance(target, ast.Starred) else target
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in unpacked(self.facts, target, place, value, self._element):
                self._bind(*part)
            return
        text = text_of(target)
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Constant):
            text = text_of(target.value)  # `for k in batch: batch[k] = batch[k].cuda()`: all of it
            place = joined((place, self.names.get(text, place)))
        self.names = {n: p for n, p in self.names.items() if not n.startswith((f"{text}.", f"{text}["))} | {text: place}

    # --- expressions ------------------------------------------------------------------------------------------------

    def of(self, node: ast.expr) -> Where:
        """Where the value of an expression is."""
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and (text := text_of(node)) in self.names:
            return self.names[text]
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, (ast.BinOp, ast.Compare)):
            return self._met([self.of(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)], node)
        if isinstance(node, ast.Name):
            return outside(self.facts, node)
        if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            return self._comprehension(node)
        if isinstance(node, ast.IfExp):
            self.of(node.test)
            return joined((self.of(node.body), self.of(node.orelse)))
        if isinstance(node, ast.NamedExpr):
            place = self.of(node.value)
            self._bind(node.target, place, node.value)
            return place
        if isinstance(node, (ast.Lambda, ast.Constant)):
            return Where.NOWHERE
        places = [self.of(part) for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return Where.NOWHERE if isinstance(node, (ast.JoinedStr, ast.FormattedValue)) else joined(places)

    def _attribute(self, node: ast.Attribute) -> Where:
        place = self.of(node.value) if not self.facts.names(node) else Where.NOWHERE
        if node.attr in operations.PLAIN:
            return Where.NOWHERE
        if place in (Where.NOWHERE, Where.UNKNOWN):
            return outside(self.facts, node)
        if place is Where.RAW and node.attr not in operations.VIEWS:
            self._need(node, Reason.UNSEEN)  # an object of the program's own, which the loader may not be able to move
        return place

    def _item(self, node: ast.Subscript) -> Where:
        base, index = self.of(node.value), self.of(node.slice)
        if index is Where.RAW and base in (Where.HOST, Where.UNKNOWN, Where.NUMPY):
            self._need(node, Reason.MIXED if base is Where.HOST else Reason.UNSEEN)
            return Where.HOST
        return base

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Where:
        kept = dict(self.names)
        for one in node.generators:
            self._bind(one.target, self._element(one.iter), one.iter)
            for test in one.ifs:
                self.of(test)
        place = self.of(node.value if isinstance(node, ast.DictComp) else node.elt)
        self.names = kept
        return place

    def _met(self, places: Sequence[Where], node: ast.expr) -> Where:
        """Where the result is of an operation that wants its operands on one device."""
        found = set(places)
        if Where.RAW in found and Where.DEVICE not in found and found & {Where.HOST, Where.UNKNOWN, Where.NUMPY}:
            self._need(node, Reason.MIXED if Where.HOST in found else Reason.UNSEEN)
            return Where.HOST
        if {Where.HOST, Where.DEVICE} <= found:
            return Where.HOST  # where the other is as well, or a number: else they would not have met
        return joined(places)

    def _need(self, node: ast.expr, reason: Reason) -> None:
        if not self.inside or self.facts.file(node).named:
            self.needs.append(Need(node, reason))

    # --- calls ------------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Where:
        given = arguments(node)
        if self._takes_batch(node):
            return Where.RAW
        if is_move(self.facts, node):
            assert isinstance(node.func, ast.Attribute)
            for each in (node.func.value, *given):
                self.of(each)
            return Where.DEVICE
        names, targets = self.facts.called(node), self.facts.targets(node)
        if names:
            return self._of_library(node, names, given)
        called = self.facts.values(node.func)
        if Role.CRITERION in roles(called) and not any(value.unit for value in called):
            for each in given:
                self.of(each)
            return Where.DEVICE
        if roles(called) & {Role.MODEL, Role.CRITERION}:
            return self._of_model(node, given)
        if targets:
            return self._enter(node, targets)
        if isinstance(node.func, ast.Attribute):
            return self._of_method(node, node.func, given)
        places = [self.of(each) for each in given]
        if Where.RAW in places:
            self._need(node, Reason.UNSEEN)
            return Where.HOST
        return Where.UNKNOWN

    def _takes_batch(self, node: ast.Call) -> bool:
        """`next(batches)` of a loader of the loop."""
        return bool(taken(self.facts, node) & self.loaders)

    def _of_library(self, node: ast.Call, names: frozenset[str], given: list[ast.expr]) -> Where:
        places = [self.of(each) for each in elements(given)]
        if "builtins.map" in names and given and isinstance(given[0], ast.Lambda):
            return self._mapped(given[0], joined(places[1:]))
        if not all(n.startswith("torch.") for n in names):
            return self._of_another(node, names, places)
        if any(n.startswith("torch.cuda.") and n.endswith("Tensor") for n in names):
            if Where.NUMPY in places:
                self._need(node, Reason.NUMPY)
            return Where.DEVICE
        if names <= tensors.VARIABLE:
            return joined(places[:1])
        if names & operations.LENGTHS_ON_CPU:
            if len(given) > 1 and self.of(given[1]) is Where.RAW:
                self._need(given[1], Reason.MIXED)
            return joined(places[:1])
        if any(isinstance(self.facts.row(n), Makes) for n in names) and Role.TENSOR in roles(self.facts.values(node)):
            return self._of_factory(node, places)
        return self._operated(node, min(names).rpartition(".")[2], places)

    def _of_another(self, node: ast.Call, names: frozenset[str], places: list[Where]) -> Where:
        """A call of a library that is not PyTorch."""
        if names <= operations.COUNTING:
            if Where.RAW in places and asks_for_cpu(self.facts, node):
                self._need(node, Reason.ASKED)
            return Where.NOWHERE
        if any(n.startswith(tensors.HOST_PREFIXES) for n in names):
            return Where.NUMPY if {Where.RAW, Where.NUMPY} & set(places) else Where.NOWHERE
        if Where.RAW in places and not all(n.startswith(operations.LOOKING) for n in names):
            self._need(node, Reason.UNSEEN)
            return Where.HOST
        return joined(places)

    def _of_factory(self, node: ast.Call, places: list[Where]) -> Where:
        if Where.NUMPY in places:
            self._need(node, Reason.NUMPY)
        elif Where.RAW in places and not names_device(node):
            return Where.RAW if self.makes_on_device else self._operated(node, "", places)
        if (device := next((k.value for k in node.keywords if k.arg == "device"), None)) is not None:
            return self._named_device(device)
        return Where.RAW if self.makes_on_device else Where.HOST

    def _named_device(self, device: ast.expr) -> Where:
        """The place that `device=x.device`, `device="cpu"`, `device=device` name."""
        if isinstance(device, ast.Attribute) and device.attr == "device":
            place = self.of(device.value)
            return place if place in (Where.RAW, Where.HOST) else Where.DEVICE
        return Where.HOST if isinstance(device, ast.Constant) and device.value == "cpu" else Where.DEVICE

    def _operated(self, node: ast.Call, name: str, places: list[Where]) -> Where:
        """An operation of PyTorch."""
        place = self._met(places, node)
        if place is Where.RAW:
            if name in operations.DRAWING:
                self._need(node, Reason.DRAWN)
            elif name not in operations.EXACT:
                self._need(node, Reason.COMPUTED)
        return place

    def _of_model(self, node: ast.Call, given: list[ast.expr]) -> Where:
        """A model's call; what it is given unmoved beside what was moved, it wants on the CPU."""
        places = [self.of(each) for each in given]
        if origins(self.facts.values(node.func), Role.MODEL) & self.split:  # DataParallel moves it all by itself
            self.handed += [Handed(e, place, self.loaders, node.func) for e, place in zip(given, places, strict=True)]
        elif Where.RAW in places:
            forwards = [
                member.unit
                for value in self.facts.values(node.func)
                if isinstance(value.unit, Class)
                for member in value.unit.lookup("forward")
                if isinstance(member.unit, Function)
            ]
            if forwards:
                self._enter(node, forwards)
            elif Where.DEVICE in places:
                self._need(node, Reason.UNSEEN)
        return Where.DEVICE

    def _mapped(self, function: ast.Lambda, place: Where) -> Where:
        kept = self.names
        self.names = kept | {parameter.arg: place for parameter in function.args.args}
        result = self.of(function.body)
        self.names = kept
        return result

    def _of_method(self, node: ast.Call, func: ast.Attribute, given: list[ast.expr]) -> Where:
        place = Where.DEVICE if is_own_model(self.facts, self.inside, func.value) else self.of(func.value)
        places = [self.of(each) for each in elements(given)]
        if func.attr in operations.COLLECTING:
            text = ast.unparse(func.value)
            held = {*places, self.names.get(text, Where.NOWHERE)} - {Where.UNKNOWN}
            self.names[text] = self._met(sorted(held, key=lambda each: each.value), node)
            return Where.NOWHERE
        if func.attr in operations.PLAIN and place is not Where.UNKNOWN:
            return Where.NOWHERE
        if (brought := self._brought(node, func.attr, place, places)) is not None:
            return brought
        if place is Where.RAW and func.attr in operations.HANDING_OUT:
            return place
        if place is Where.RAW or (place is Where.HOST and Where.RAW in places):
            return self._operated(node, func.attr, [place, *places])
        if Where.RAW in places and place is Where.UNKNOWN:
            self._need(node, Reason.UNSEEN)
            return Where.HOST
        return self._met([place, *places], node) if place is not Where.NOWHERE else joined(places)

    def _brought(self, node: ast.Call, method: str, place: Where, places: list[Where]) -> Where | None:
        """Where a tensor is after a method that may bring it elsewhere; None: it brings nothing anywhere."""
        if method == "numpy":
            return Where.NUMPY if place in (Where.RAW, Where.NUMPY) else Where.NOWHERE
        if casts_to_cpu(self.facts, node):
            if place is Where.RAW:
                self.casts.append(node)
            return place if place is Where.RAW else Where.HOST
        if method == "cpu" or (method == "to" and names_cpu(node)):
            return Where.NUMPY if place is Where.NUMPY else Where.HOST
        if method == "to" and node.args and isinstance(node.args[0], ast.Attribute) and node.args[0].attr == "device":
            return self._named_device(node.args[0])
        if method in ("to", "type_as") and places and places[0] in (Where.RAW, Where.HOST, Where.DEVICE):
            return places[0]
        if method == "pin_memory" and place is Where.RAW:
            self._need(node, Reason.PINNED)
        return place if method in ("copy_", "resize_as_", "pin_memory") else None

    def _enter(self, node: ast.Call, targets: Sequence[Function]) -> Where:
        """Functions of the project, with what they are given here."""
        given = arguments(node)
        places = [self.of(each) for each in given]
        if len(self.inside) >= DEPTH or set(targets) & set(self.inside):
            return joined(places)
        results = []
        for target in targets:
            place, left = self._entered(target, {**of_self(self.names), **passed(node, target, places)})
            self.names |= left
            results.append(place)
        return joined(results)

    def _entered(self, target: Function, names: dict[str, Where]) -> tuple[Where, dict[str, Where]]:
        """Where the result of a function is, and what it leaves in its object: looked at once for what it is given."""
        key = self.inside, target, frozenset(names.items())
        if key not in self.known:
            walk = replace(self, names=names, returned=[], inside=(*self.inside, target))
            walk.along(target)
            self.known[key] = joined(walk.returned), of_self(walk.names)
        return self.known[key]
