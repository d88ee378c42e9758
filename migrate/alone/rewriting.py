"""The first pass: what several processes are for goes away, and what a process asks of itself, it asks the accelerator.

Nothing is taken out here for not being used any more; `clearing` does that on the result.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from migrate.alone import calls, devices, jobs, numbers, samplers, sharded_states, synchronized, tests
from migrate.alone.kinds import is_affirmed
from migrate.alone.own_sizes import OwnSizes
from migrate.alone.prefixes import strip
from migrate.alone.scales import Scales
from migrate.alone.told import told
from migrate.alone.ways import certain, ends
from migrate.analysis.known import distributed
from migrate.analysis.roles import Role, roles
from migrate.programs.reach.callees import reached
from migrate.programs.reach.unused import Unused

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from migrate.alone.dealing import Dealing
    from migrate.alone.gatherings import Gatherings
    from migrate.alone.pen import Pen
    from migrate.alone.setup import Setups
    from migrate.alone.sums import Sums
    from migrate.alone.world import World
    from migrate.analysis.facts import Facts, Use
    from migrate.analysis.units import Module

_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Rewriting:
    """One walk over the statements of the modules."""

    def __init__(
        self,
        world: World,
        pen: Pen,
        setups: Setups,
        sums: Sums,
        dealing: Dealing,
        gatherings: Gatherings,
        done: Collection[int],
    ) -> None:
        self._world = world
        self._pen = pen
        self._setups = setups
        self._done = done  # ids of nodes that another pass has taken away
        self._samplers = samplers.Samplers(world, dealing)
        self._dealing = dealing
        self._sums = sums
        self._gatherings = gatherings
        self._scales = Scales(world, sums)
        self._own_sizes = OwnSizes(world, self._scales)

    def run(self) -> None:
        """Plan the edits of every module."""
        for module in self._world.modules:
            self._block(module.tree.body)
        strip(self._world, self._pen)
        for statement, text in jobs.told(self._world):
            self._pen.after(statement, text)
            self._pen.add_import(self._world.facts.file(statement).path, "os")
        for loop, loader in self._samplers.repeated():
            self._pen.before(loop, f"{loader}.set_epoch(0)")

    @property
    def scales(self) -> Scales:
        """What becomes of the numbers that go by how many processes there are."""
        return self._scales

    @property
    def samplers(self) -> samplers.Samplers:
        """What became of the samplers."""
        return self._samplers

    # --- statements -------------------------------------------------------------------------------------------------

    def _block(self, block: list[ast.stmt]) -> None:
        for number, statement in enumerate(block):
            if id(statement) in self._done:
                continue
            self._statement(statement)
            if isinstance(statement, ast.If):
                kept = certain(self._world, statement)
                if kept and ends(self._world, kept):
                    for dead in block[number + 1 :]:
                        if id(dead) not in self._done:
                            self._pen.remove(dead)
                    return

    def _statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, _NESTED) and self._world.questions.is_asked(statement):
            return
        if isinstance(statement, _NESTED) and self._world.is_left(statement):
            return
        if isinstance(statement, ast.ClassDef) and self._stays(statement):
            return
        if isinstance(statement, _NESTED) and self._setups.is_gone(statement):
            self._pen.remove(statement)
        elif (text := self._sums.instead(statement) or self._gatherings.instead(statement)) is not None:
            self._pen.replace(statement, text)
        elif isinstance(statement, (ast.If, ast.Assert)):
            self._asking(statement)
        elif (text := self._setups.muting(statement)) is not None:
            self._pen.replace(statement, text)
        elif self._goes(statement):
            self._pen.remove(statement)
        elif (text := calls.instead(self._world, statement)) is not None:
            self._pen.replace(statement, text)
        elif isinstance(statement, ast.Assign) and (counted := self._scales.instead(statement)) is not None:
            self._pen.rewrite(statement.value, told(self._world, counted))
        else:
            self._inside(statement)

    def _stays(self, statement: ast.ClassDef) -> bool:
        return self._sums.insides.is_unused(statement) or self._dealing.holds(statement)

    def _asking(self, statement: ast.If | ast.Assert) -> None:
        if isinstance(statement, ast.If):
            self._if(statement)
        elif not tests.demand(self._world, self._pen, statement):
            self._inside(statement)

    def _if(self, statement: ast.If) -> None:
        if self._samplers.is_warned(statement):
            self._pen.remove(statement)
            return
        if is_affirmed(self._world.facts, self._samplers, statement.test):
            self._pen.fold(statement, "body")
            self._block(statement.body)
            return
        if (asked := synchronized.stays(self._world, statement)) is not None:
            self._pen.rewrite(statement.test, asked)
            self._block(statement.orelse)
            return
        kept = tests.fold(self._world, self._pen, statement)
        if kept is not None:
            numbers, samplers = self._scales.kept(statement), self._samplers.kept(statement, kept)
            for text in (*numbers, *samplers, *synchronized.kept(self._world, statement, kept)):
                self._pen.before(statement, text)
            self._block(kept)
            return
        if (asked := self._dealing.asks(statement) or self._sums.asks(statement)) is not None:
            self._pen.rewrite(statement.test, asked)
        else:
            for left in tests.ask(self._world, self._pen, statement.test):
                self._expression(left)
        self._block(statement.body)
        self._block(statement.orelse)

    def _goes(self, statement: ast.stmt) -> bool:
        """Whether a statement does nothing where there is one process."""
        return (
            self._setups.is_call(statement)
            or calls.is_idle(self._world, statement)
            or sharded_states.is_idle(self._world, statement)
            or devices.sets_device(self._world, statement)
            or numbers.divides_by_size(self._world, self._scales, statement)
            or numbers.defines_place(self._world, statement)
            or self._samplers.is_made(statement)
            or self._gatherings.is_made(statement)
            or self._sums.collecting.goes(statement)
            or self._sums.joining.is_idle(statement)
        )

    def _inside(self, node: ast.AST) -> None:
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self._block(value)
            else:
                for child in value if isinstance(value, list) else [value]:
                    self._child(child)

    def _child(self, child: object) -> None:
        """The parts of a statement: expressions, and what holds more of them."""
        if isinstance(child, ast.expr):
            self._expression(child)
        elif isinstance(child, ast.AST):
            self._inside(child)

    # --- expressions ------------------------------------------------------------------------------------------------

    def _expression(self, node: ast.expr) -> None:
        if isinstance(node, ast.IfExp):
            if (text := numbers.chosen(self._world, node) or self._scales.chosen(node)) is not None:
                self._pen.rewrite(node, text)
                return
            kept = tests.choose(self._world, self._pen, node)
            if kept is not None:
                self._expression(kept)
                return
            for asked in (*tests.ask(self._world, self._pen, node.test), node.body, node.orelse):
                self._expression(asked)
            return
        for left in self._rewritten(node):
            self._child(left)

    def _rewritten(self, node: ast.expr) -> list[ast.AST]:
        """Rewrite an expression itself; what of it is to be looked at is given back."""
        ways: tuple[Callable[[Pen, ast.expr], list[ast.AST] | None], ...] = (
            self._dealing.rewrite,
            self._samplers.rewrite,
            self._sums.collecting.rewrite,
            self._sums.rewrite,
            partial(calls.rewrite, self._world),
            partial(sharded_states.rewrite, self._world),
            partial(devices.rewrite, self._world),
            self._setups.rewrite,
            self._own_sizes.rewrite,
            partial(numbers.rewrite, self._world, self._scales),
        )
        for rewrite in ways:
            if (left := rewrite(self._pen, node)) is not None:
                return left
        return list(ast.iter_child_nodes(node))


def starts(facts: Facts, modules: Collection[Module]) -> list[Use]:
    """Where there is something to do: a group that is joined, processes that are started, a wrapper, a sampler.

    A group may be joined by a function of a file that is not named. There is nothing where an accelerator does it
    already.
    """
    wanted = (
        distributed.PROCESS_GROUPS
        | distributed.LAUNCHERS
        | distributed.DISTRIBUTED_DATA_PARALLEL
        | distributed.SAMPLERS
    )
    unused = facts.once(Unused)
    uses = [use for use in facts.calls_anywhere if use.unit.module in modules and not unused.holds(use.node)]
    if any(Role.ACCELERATOR in roles(facts.values(use.node)) for use in uses):
        return []
    return [use for use in uses if facts.called(use.node) & wanted or _joins_elsewhere(facts, use)]


def _joins_elsewhere(facts: Facts, use: Use) -> bool:
    """`init_distributed(rank, n)` of a file that is not named, and so stays as it is."""
    others = [unit for unit in facts.targets(use.node) if not facts.is_editable(unit)]
    return any(
        isinstance(node, ast.Call) and facts.called(node) & distributed.PROCESS_GROUPS
        for unit in reached(facts, others)
        for node in facts.own(unit)
    )
