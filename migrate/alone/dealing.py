"""Samplers of the project's own that deal the data out as DistributedSampler does: repeated augmentation, weights.

Such a sampler draws one order on all processes, and process r of n takes every n-th index of it, from the r-th on, or
the r-th of n pieces. Told that there is one process, it gives the whole order. So the class stays as it is, each of its
samplers is told so, and prepare gives each process its share. Where only several processes have such a sampler, the
branch that makes it stays, and asks the accelerator how many there are.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from migrate.alone.quantities import RANKS
from migrate.alone.strides import Strides
from migrate.alone.tests import asks_only_for_several
from migrate.analysis.known.distributed import SAMPLERS
from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import argument_at, arguments
from migrate.analysis.units import Class
from migrate.programs.marker import ACCELERATOR
from migrate.programs.program import Refusal
from migrate.programs.values.place import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.alone.pen import Pen
    from migrate.alone.world import World

#: The parameters of DistributedSampler.
_DISTRIBUTED = ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last")
_COUNTED = f"{ACCELERATOR}.num_processes"


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the constructor of such a class calls the number of processes, and which of them it is on."""

    names: tuple[str, ...]  # of all parameters, without self
    size: str
    rank: str


class Dealing:
    """The samplers of these classes, and the branches that only several processes make them in."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._branches = list(self._only_of_several())
        if self._branches:
            world.keep({branch.test for branch in self._branches})

    # --- classes ----------------------------------------------------------------------------------------------------

    @cached_property
    def calls(self) -> dict[ast.Call, Parameters]:
        """The calls that make such a sampler."""
        return {
            call: parameters
            for call, cls in self._made
            if cls.node in self._classes and (parameters := self._classes[cls.node]) is not None
        }

    @cached_property
    def _made(self) -> list[tuple[ast.Call, Class]]:
        """The calls that make samplers of classes of the project."""
        facts = self._world.facts
        uses = (use.node for use in facts.calls_anywhere if use.unit.module in self._world.modules)
        made = ((call, self._class_of(call)) for call in uses)
        return [(c, cls) for c, cls in made if cls is not None and Role.SAMPLER in facts.roles_of_bases(cls)]

    def _class_of(self, call: ast.Call) -> Class | None:
        found = [value.unit for value in self._world.facts.values(call.func) if value.role is Role.CLASS]
        return found[0] if len(found) == 1 and isinstance(found[0], Class) else None

    @cached_property
    def _classes(self) -> dict[ast.ClassDef, Parameters]:
        """The classes, each with what its constructor is told."""
        classes = {cls.node: cls for _, cls in self._made}
        found = ((node, self._parameters(cls)) for node, cls in classes.items())
        return {node: parameters for node, parameters in found if parameters is not None}

    def _parameters(self, cls: Class) -> Parameters | None:
        """What the constructor of a class is told, where the class takes every n-th index from the r-th on."""
        is_derived = bool(cls.library_bases() & SAMPLERS)
        names = _parameter_names(cls, is_derived)
        if len(cls.mro()) > 1 or names is None:
            return None
        calls = [call for call, made in self._made if made is cls]
        told = {name: {self._quantity(argument_at(call, at, name)) for call in calls} for at, name in enumerate(names)}
        sizes = {name for name, kinds in told.items() if Quantity.WORLD_SIZE in kinds}
        ranks = {name for name, kinds in told.items() if kinds & RANKS}
        strides = Strides(self._world, cls.node, sizes, ranks, is_derived=is_derived)
        sizes, ranks = strides.sizes.intersection(names), strides.ranks.intersection(names)
        if len(sizes) != 1 or len(ranks) != 1 or not strides.deal:
            return None
        return Parameters(names, sizes.pop(), ranks.pop())

    def _quantity(self, node: ast.expr | None) -> Quantity | None:
        return None if node is None else self._world.quantity(node)

    def holds(self, node: ast.AST) -> bool:
        """Whether code stands in such a class: it stays as it is."""
        if node in self._classes:
            return True
        return any(above in self._classes for above in self._world.facts.tree(node).up(node))

    # --- branches ---------------------------------------------------------------------------------------------------

    def _only_of_several(self) -> Iterator[ast.If]:
        """The branches in which one process would not make such a sampler, and would not tell it the epoch.

        What the program itself has switched off (`if False:`) is no such branch.
        """
        for call in (*self.calls, *self._telling):
            tree = self._world.facts.tree(call)
            for above in tree.up(call):
                if not isinstance(above, ast.If) or isinstance(above.test, ast.Constant):
                    continue
                truth = self._world.truth(above.test)
                lost = above.orelse if truth else above.body
                if truth is not None and tree.in_block(call, lost) is not None:
                    yield above

    @cached_property
    def _telling(self) -> dict[ast.Call, ast.expr]:
        """`sampler.set_epoch(epoch)`, `loader.sampler.set_epoch(epoch)` of such samplers, and what is told."""
        asked = (use.node for use in self._world.facts.calls_anywhere if use.unit.module in self._world.modules)
        return {call: told for call in asked if (told := told_epoch(call)) is not None and self._is_ours(told)}

    @property
    def _unknown(self) -> Iterator[ast.Call]:
        """What is told the epoch and may be such a sampler."""
        facts = self._world.facts
        for use in facts.calls_anywhere if self.calls else ():
            if (told := told_epoch(use.node)) is not None and use.unit.module in self._world.modules:
                if use.node in self._telling or not (facts.values(told) or facts.values(getattr(told, "value", told))):
                    yield use.node

    def _is_ours(self, sampler: ast.expr) -> bool:
        """Whether an expression may be such a sampler."""
        facts = self._world.facts
        if isinstance(sampler, ast.Attribute) and sampler.attr == "sampler":
            if given := self._given_to_loader(sampler.value):
                return any(map(self._is_ours, given))
        made = {facts.source(v.origin) for v in facts.values(sampler) if v.origin is not None}
        over = (facts.over(origin) for origin in made)
        inner = {facts.source(v.origin) for values in over for v in values if v.origin is not None}
        return not self.calls.keys().isdisjoint(made | inner)

    def _given_to_loader(self, loader: ast.expr) -> list[ast.expr]:
        """The samplers that a loader is given where it is made."""
        facts = self._world.facts
        made = {facts.source(origin) for origin in facts.loaders(facts.values(loader))}
        return [k.value for call in made if isinstance(call, ast.Call) for k in call.keywords if k.arg == "sampler"]

    def _name_at(self, telling: ast.Call) -> str | None:
        """The sampler's own name where it is told the epoch by its loader, which prepare may make another of."""
        told = self._telling[telling]
        given = self._given_to_loader(told.value) if isinstance(told, ast.Attribute) and told.attr == "sampler" else []
        if not given:
            return ast.unparse(told)
        tree = self._world.facts.tree(telling)
        if len(given) != 1 or not isinstance(given[0], ast.Name) or given[0] not in tree:
            return None
        function, name = tree.function(telling), given[0].id
        stored = [n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name and _is_store(n)]
        is_same = tree.function(given[0]) is function and all(n.lineno < given[0].lineno for n in stored)
        return name if is_same and stored else None

    def asks(self, branch: ast.If) -> str | None:
        """What the test of a branch that stays asks the accelerator."""
        if branch not in self._branches:
            return None
        return f"{_COUNTED} {'==' if self._world.truth_alone(branch.test) else '>'} 1"

    def obstacles(self) -> Iterator[Refusal]:
        """Branches that hold more than samplers, and samplers that somebody counts by."""
        for branch in self._branches:
            asks = asks_only_for_several(self._world, branch.test)
            if not asks or not all(map(self._is_about_samplers, (*branch.body, *branch.orelse))):
                yield _refused(branch, "only several processes make this sampler, in a branch that does more than that")
        for call in (*self.calls, *self._unknown):
            if id(call) in self._world.dead:
                yield _refused(call, "only several processes come here, and what the sampler does would be lost")
        for telling in self._telling:
            if self._name_at(telling) is None:
                yield _refused(telling, "the sampler of this loader, which shares the data out, has no name here")
        for module in self._world.modules if self.calls else ():
            for node in self._world.facts.tree_of(module).nodes:
                if isinstance(node, ast.expr) and self._counts(node) and not self.holds(node):
                    yield _refused(node, "this sampler shares the data out, and is asked for something else")

    def _is_about_samplers(self, statement: ast.stmt) -> bool:
        """Whether a statement of a branch makes a sampler, tells it the epoch, or is a number of the place."""
        if isinstance(statement, ast.If):
            return all(map(self._is_about_samplers, (*statement.body, *statement.orelse)))
        if isinstance(statement, ast.Expr):
            return isinstance(statement.value, ast.Call) and self._is_said(statement.value)
        if not isinstance(statement, ast.Assign):
            return isinstance(statement, ast.Pass)
        targets, values = _parts(statement.targets[0]), _parts(statement.value)
        return all(isinstance(target, ast.Name) for target in targets) and all(map(self._is_of_sampler, values))

    def _is_of_sampler(self, value: ast.expr) -> bool:
        """Whether a value is a sampler, or what one is told."""
        makes = Role.SAMPLER in roles(self._world.facts.values(value))
        return makes or isinstance(value, ast.Constant) or self._world.quantity(value) is not None

    def _is_said(self, call: ast.Call) -> bool:
        return call in self._telling or ast.unparse(call.func) == "print"

    def _counts(self, node: ast.expr) -> bool:
        """Whether such a sampler is asked for its length, or for anything but its `set_epoch`."""
        tree = self._world.facts.tree(node)
        parent = tree.parents.get(node)
        if isinstance(parent, ast.Attribute):
            return parent.attr != "set_epoch" and self._may_be(node)
        is_argument = isinstance(parent, ast.Call) and node in parent.args and not self._takes(parent)
        return is_argument and self._may_be(node)

    def _may_be(self, node: ast.expr) -> bool:
        return isinstance(node, (ast.Name, ast.Attribute, ast.Call)) and self._is_ours(node)

    def _takes(self, call: ast.Call) -> bool:
        """Whether a call makes a sampler, or a loader, of what it is given, or enters the project's own code."""
        facts = self._world.facts
        made = roles(facts.values(call))
        return bool(made & {Role.SAMPLER, Role.LOADER}) or bool(facts.targets(call))

    # --- edits ------------------------------------------------------------------------------------------------------

    def rewrite(self, pen: Pen, node: ast.expr) -> list[ast.AST] | None:
        """`Sampler(data, num_replicas=1, rank=0)`: the whole order, for prepare to deal out."""
        if not isinstance(node, ast.Call):
            return None
        if node in self._telling and (name := self._name_at(node)) is not None:
            pen.rewrite(self._telling[node], name)
            return [*node.args]
        if (parameters := self.calls.get(node)) is None:
            return None
        done = []
        for name, alone in ((parameters.size, "1"), (parameters.rank, "0")):
            value = argument_at(node, parameters.names.index(name), name)
            if value is None:
                pen.add_keyword(node, name, alone)
            else:
                pen.rewrite(value, alone)
                done.append(value)
        return [each for each in arguments(node) if each not in done]


def _parameter_names(cls: Class, is_derived: bool) -> tuple[str, ...] | None:
    """What a class calls the arguments of its constructor, in their order."""
    init = next((s for s in cls.node.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    if init is None:
        return _DISTRIBUTED if is_derived else None
    if init.args.vararg or init.args.kwarg or init.args.kwonlyargs:
        return None
    return tuple(arg.arg for arg in (*init.args.posonlyargs, *init.args.args))[1:]


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _is_store(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def told_epoch(call: ast.Call) -> ast.expr | None:
    """The `sampler` of `sampler.set_epoch(epoch)`; None: the call tells nothing the epoch."""
    func = call.func
    return func.value if isinstance(func, ast.Attribute) and func.attr == "set_epoch" else None


def _refused(node: ast.AST, why: str) -> Refusal:
    return Refusal(node, "MIG113", why, "give the loader the sampler of one process, then run migrate again")
