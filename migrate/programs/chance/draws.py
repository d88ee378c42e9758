"""Where a program draws random numbers: batches, noise, games, and the weights of models that are not trained.

The weights that are trained are no such thing: prepare gives all processes those of the first.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.analysis.known.data import SPLITS
from migrate.analysis.known.training import THROUGH_WRAPPER
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import FUNCTIONS, is_main_guard, is_none
from migrate.analysis.units import Function, Module
from migrate.programs.chance.hub import draws_from_numpy
from migrate.programs.chance.seeds import BESIDE, ENVIRONMENT, GENERATOR, NUMBER, OWN_SEED, modules_of
from migrate.programs.reach.callees import reached
from migrate.programs.reach.outsiders import is_inside_model
from migrate.programs.training.loose import trained_alone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Call, Unit
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program
    from migrate.programs.stages import Spot

_LOOKING = frozenset({"builtins.isinstance", "builtins.type", "builtins.len"})
#: Layers, which draw when they are made; what hands data out; streams, which have seeds of their own.
_OTHERWISE = ("torch.nn.", "torch.utils.data.", "random.Random")


class Draws:
    """The answers for one program; what is drawn from streams that are `seeded` already is left out."""

    def __init__(self, facts: Facts, program: Program, seeded: frozenset[str] = frozenset()) -> None:
        self._facts = facts
        self._program = program
        self._seeded = seeded
        self.modules = modules_of(facts, program)

    @cached_property
    def uses(self) -> list[Use]:
        """The calls in the files of the program."""
        return [use for use in self._facts.calls_anywhere if use.unit.module in self.modules]

    def own(self, missing: list[str]) -> bool:
        """Whether each process draws something of its own, if nobody seeds what is missing."""
        if not missing or self._program.raw:
            return bool(missing)
        if {ENVIRONMENT, GENERATOR, NUMBER, OWN_SEED, BESIDE} & set(missing):
            return True
        if any(b"ropout" in module.file.content for module in self.modules):
            return True
        return any(self.draws(use.node) or self._makes_model(use) for use in self.uses)

    def must_agree(self, loops: Loops) -> bool:
        """Whether what is drawn must be the same on all: it lasts, or gradients go around the wrapper of a model.

        Fresh batches in each step may differ: the gradients are averaged.
        """
        if self._keeps_weights or trained_alone(self._facts, self._program):
            return True
        training = {loop.node for loop in self._program.training}
        around = training.union(*(loops.around(loop, self._facts.unit(loop)) for loop in training))
        return any(
            self._asks_model(use.node) or (self.draws(use.node) and around.isdisjoint(loops.around(use.node, use.unit)))
            for use in self.uses
        )

    @cached_property
    def _keeps_weights(self) -> bool:
        """Whether there are weights beside those that are prepared: another model, or a copy of a trained one."""
        return bool(self._program.raw) or any(self._makes_model(use) or self._copies(use.node) for use in self.uses)

    def _copies(self, call: ast.Call) -> bool:
        """`copy.deepcopy(net)`, `target.load_state_dict(net.state_dict())`."""
        given = call.args[0] if call.args else None
        if isinstance(call.func, ast.Attribute) and call.func.attr == "load_state_dict" and isinstance(given, ast.Call):
            given = given.func.value if isinstance(given.func, ast.Attribute) else None
        elif "copy.deepcopy" not in self._facts.called(call):
            return False
        return given is not None and bool(origins(self._facts.values(given), Role.MODEL) & self._program.model_origins)

    def _makes_model(self, use: Use) -> bool:
        """Whether a call makes a model that is not trained, with weights that are drawn."""
        if Role.MODEL not in roles(self._facts.values(use.node)) or is_inside_model(self._facts, use.unit):
            return False
        return self._draws_deep(use.node)

    def draws_weights(self, call: ast.Call) -> bool:
        """Whether a call that makes a model draws its weights."""
        return self._draws_deep(call, weights=True)

    def _asks_model(self, call: ast.Call) -> bool:
        """Whether a call is one of a method that a trained model has itself."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr in THROUGH_WRAPPER:
            return False
        entered = any(isinstance(target, Function) for target in self._facts.targets(call))
        return entered and bool(origins(self._facts.receiver(call), Role.MODEL) & self._program.model_origins)

    def before(self, spot: Spot) -> ast.Call | None:
        """Something that is drawn before the accelerator stands at its place."""
        calls = (c for c in self.calls_before(spot) if not self._is_looked_at(c))
        return next((call for call in calls if self._draws_deep(call, weights=self._keeps_weights)), None)

    def calls_before(self, spot: Spot) -> Iterator[ast.Call]:
        """The calls that are made before the accelerator stands at its place, without those in functions."""
        start = self._program.start
        assert start is not None
        return self._before(start, spot.statement.lineno + (spot.where == "after"), set(), spot.statement)

    def _is_looked_at(self, call: ast.Call) -> bool:
        """Whether only the type or the size of what a call gives is asked for."""
        above = next(self._facts.tree(call).up(call), None)
        if isinstance(above, ast.Call):
            return bool(self._facts.called(above) & _LOOKING)
        return isinstance(above, ast.Attribute) and above.attr in known.SIZE_ATTRIBUTES

    def is_made_above(self, statement: ast.stmt) -> bool:
        """Whether a statement of the module runs before the function that makes the accelerator is called there."""
        start, module = self._program.start, self._facts.unit(statement)
        if not isinstance(start, Function) or module is not start.module:
            return False
        calls = (node for node in self._facts.own(module) if isinstance(node, ast.Call))
        leading = [node for node in calls if self._leads_to(node, start)]
        return bool(leading) and all(node.lineno > statement.lineno for node in leading)

    def inside(self, statement: ast.stmt) -> bool:
        """Whether a statement draws when it runs."""
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            return False
        return any(
            isinstance(node, ast.Call) and self._draws_deep(node, weights=self._keeps_weights)
            for node in ast.walk(statement)
        )

    # --- one call ---------------------------------------------------------------------------------------------------

    def draws(self, call: ast.Call) -> bool:
        """Whether a call itself draws something else than the weights of a layer."""
        names = self._names(call)
        if split := next((name for name in names if name in SPLITS), None):
            return not any(keyword.arg in (None, SPLITS[split][1]) for keyword in call.keywords)
        if any(name.startswith(_OTHERWISE) for name in names) or _has_stream(call):
            return False
        if any(name in seeds for name in names for seeds in (*known.SEEDS.values(), known.SEEDS_ALL)):
            return False
        if any(known.draws(n) or known.draws_from("random", n) or known.draws_from("numpy", n) for n in names):
            return True
        if self._facts.called(call) or not isinstance(call.func, ast.Attribute):
            return False
        return call.func.attr in known.DRAWING_METHODS or draws_from_numpy(self._facts, call)

    def _names(self, call: ast.Call) -> frozenset[str]:
        """What a call may be of a library, without what draws from a stream that is seeded."""
        names = self._facts.called(call)
        return frozenset(n for n in names if not any(known.draws_from(each, n) for each in self._seeded))

    def _draws_deep(
        self, call: ast.Call, seen: set[tuple[Function, bool]] | None = None, *, weights: bool = False
    ) -> bool:
        """Whether a call draws, itself or in the functions that it enters, other things than weights to be trained.

        `weights`: those too, inside of a model that is not trained: it may be of the same class as one that is.
        """
        if not weights and self._is_trained(call):
            return False
        if self.draws(call) or any(n.startswith("torch.nn.") and known.draws(n) for n in self._names(call)):
            return True
        weights = weights or Role.MODEL in roles(self._facts.values(call))
        seen = set() if seen is None else seen
        new = [target for target in self._facts.targets(call) if (target, weights) not in seen]
        seen.update((target, weights) for target in new)
        inside = (node for target in new for node in self._facts.own(target).of(ast.Call))
        return any(self._draws_deep(node, seen, weights=weights) for node in inside)

    def _is_trained(self, call: ast.Call) -> bool:
        """Whether a call makes a trained model, or a part of one."""
        above = [node for node in self._facts.tree(call).up(call) if isinstance(node, ast.Call)]
        return any(origins(self._facts.values(node), Role.MODEL) & self._trained for node in (call, *above))

    @cached_property
    def _trained(self) -> set[ast.AST]:
        return self._program.model_origins | self._facts.parts(self._program.model_origins)

    # --- what runs before -------------------------------------------------------------------------------------------

    def _before(self, unit: Unit, line: int, seen: set[int], place: ast.AST) -> Iterator[ast.Call]:
        """The calls that are made before a line of a unit runs, without those in the functions that they enter.

        `place`: what is run there; whoever comes to it has not taken the other arms of the branches around it.
        """
        above = [n for n in self._facts.own(unit).of(ast.Call) if n.lineno < line]
        yield from (call for call in above if not self._is_in_other_arm(call, place))
        if isinstance(unit, Module) or id(unit) in seen:
            return
        if not seen:
            yield from self._while_loading(unit)
        seen.add(id(unit))
        calls = self._facts.callers(unit)
        for call in calls:
            first = min((c.node.lineno for c in calls if self._is_sure(c, call)), default=call.node.lineno)
            yield from self._before(call.caller, first, seen, call.node)

    def _is_in_other_arm(self, call: ast.Call, place: ast.AST) -> bool:
        """Whether a call and a place are in two arms of one branch, and no loop comes to both."""
        tree = self._facts.tree(place)
        if not set(tree.loops(call)).isdisjoint(tree.loops(place)):
            return False
        branches = (above for above in tree.up(place) if isinstance(above, ast.If))
        arms = ((each.body, each.orelse) for each in branches)
        return any(
            tree.in_block(place, one) is not None and tree.in_block(call, other) is not None
            for body, orelse in arms
            for one, other in ((body, orelse), (orelse, body))
        )

    def _is_sure(self, first: Call, call: Call) -> bool:
        """Whether a call is made before another one whenever that is: then there is an accelerator by then."""
        if first.caller is not call.caller or first.node.lineno >= call.node.lineno:
            return False
        tree = self._facts.tree(call.node)
        above = tree.statement(first.node)
        return (
            isinstance(above, (ast.Assign, ast.Expr))
            and above.value is first.node
            and (tree.in_block(call.node, tree.block(above)) is not None)
        )

    def _while_loading(self, start: Function) -> Iterator[ast.Call]:
        """The calls that are made while the files are imported which do not themselves lead to a function."""
        for module in self.modules:
            calls = [node for node in self._facts.own(module) if isinstance(node, ast.Call)]
            if not any(self._leads_to(node, start) for node in calls):
                yield from (call for call in calls if not any(map(is_main_guard, self._facts.tree(call).up(call))))

    def _leads_to(self, call: ast.Call, unit: Function) -> bool:
        return unit in reached(self._facts, self._facts.targets(call))


def _has_stream(call: ast.Call) -> bool:
    """`torch.randn(8, generator=stream)`: who seeds that stream is asked of what makes it."""
    return any(keyword.arg == "generator" and not is_none(keyword.value) for keyword in call.keywords)
