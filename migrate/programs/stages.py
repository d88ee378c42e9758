"""The stages of a program: what is made, prepared by one call, and then used.

Most programs make everything first and have one stage. Where a program trains, makes another model and trains again,
what is made after the first use is a stage of its own: it is prepared after the last statement that makes a part of it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import FUNCTIONS, Tree, blocks, line_of, walk
from migrate.analysis.units import Function, Module, Unit
from migrate.programs.chance.initial import draws_weights
from migrate.programs.home.places import Unplaced, placed
from migrate.programs.prepare.given_back import is_the_same
from migrate.programs.prepare.moved_below import is_placing, moved_below
from migrate.programs.prepare.replaced import gives_layer
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.callees import leading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.home.naming import Named
    from migrate.programs.loops import Loops


@dataclass(frozen=True, slots=True)
class Spot:
    """A place between statements: before or after one, or instead of it."""

    statement: ast.stmt
    where: str  # "before", "after", "instead"
    spaced: bool


@dataclass(frozen=True, slots=True)
class Stage:
    """The objects that one call of prepare takes, and the place in a unit where it stands."""

    unit: Unit
    spot: Spot
    objects: tuple[Named, ...]
    call: ast.Call | None = None  # prepare stands around the one that makes its object, not at the spot

    @property
    def origins(self) -> set[ast.AST]:
        """Where its objects were made."""
        return {origin for named in self.objects for origin in named.origins}

    @property
    def end(self) -> int:
        """The line after which its objects are prepared."""
        if self.call is not None:
            return 0
        return self.spot.statement.end_lineno or self.spot.statement.lineno

    def is_of_last_round(self, tree: Tree, node: ast.AST) -> bool:
        """Whether a node stands above what makes the objects, in one loop with it: it meets those of the last round."""
        lines = [named.statements[0].lineno for named in self.objects if named.statements]
        if not lines or line_of(node) >= min(lines):
            return False
        return not set(tree.loops(node)).isdisjoint(tree.loops(self.spot.statement))


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a program at home, in the order in which they stand; there is at least one."""

    each: tuple[Stage, ...]
    elsewhere: tuple[Stage, ...] = ()  # of loaders that are made in other units
    used: int = 0  # the line of the home's first statement that trains or evaluates; 0: it has none

    @property
    def first(self) -> Stage:
        """The stage before which nothing is prepared."""
        return self.each[0]

    def only(self, kept: Sequence[Named]) -> Stages:
        """The stages without what is not prepared after all."""
        each, elsewhere = (
            tuple(replace(stage, objects=tuple(named for named in stage.objects if named in kept)) for stage in stages)
            for stages in (self.each, self.elsewhere)
        )
        return Stages(each, tuple(stage for stage in elsewhere if stage.objects), self.used)

    def of(self, made: Iterable[ast.AST]) -> Stage:
        """The stage in which the last of some objects is prepared; the last of all where none of them is."""
        mine = set(made)
        stages = (*self.elsewhere, *reversed(self.each))
        return next((stage for stage in stages if stage.origins & mine), self.each[-1])


class NoPlace(Exception):
    """There is no right place."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why)
        self.refusal = refusal


def tree_of(facts: Facts, unit: Unit) -> Tree:
    """The tree that holds the statements of a unit."""
    return facts.tree(unit.tree if isinstance(unit, Module) else unit.node)


def staged(
    facts: Facts, loops: Loops, program: Program, prepared: Iterable[Named], above: Mapping[ast.AST, frozenset[Role]]
) -> Stages:
    """The stages of what is prepared; objects of some kinds `above` what needs them prepared.

    Raises:
        NoPlace: something is used before it can be prepared, or made anew where it is prepared.
    """
    assert program.home is not None
    prepared = list(prepared)
    walk = _Walk(facts, loops, program, [named for named in prepared if named.unit is None], above)
    walk.run()
    if walk.refused:
        raise NoPlace(walk.refused[0])
    return Stages(
        tuple(Stage(program.home, _spot(walk, group), tuple(group)) for group in walk.groups),
        _elsewhere(facts, program, [named for named in prepared if named.unit is not None]),
        walk.used,
    )


def _elsewhere(facts: Facts, program: Program, prepared: list[Named]) -> tuple[Stage, ...]:
    """The stages of loaders that are prepared where they are made."""
    try:
        found = placed(facts, program, prepared)
    except Unplaced as error:
        raise NoPlace(error.refusal) from error
    units = [names[0].unit for _, names in found]
    return tuple(
        Stage(unit, Spot(last, "after", spaced=True), tuple(names), names[0].call)
        for unit, (last, names) in zip(units, found, strict=True)
        if unit is not None
    )


def first_made(facts: Facts, loops: Loops, program: Program) -> int:
    """The line of the last statement that makes an object of the first stage."""
    named = [n for n in (*program.models, *program.optimizers, *program.loaders) if n.unit is None]
    walk = _Walk(facts, loops, program, named)
    walk.run()
    first = named if len(walk.groups) < 2 else walk.groups[0]
    return max((s.end_lineno or s.lineno for each in first for s in each.statements), default=0)


def tell_apart(facts: Facts, loops: Loops, program: Program) -> None:
    """Tell objects of a program apart that have one name one after the other, where the one before is used between."""
    program.models = tuple(_without_late(facts, loops, program, named) for named in program.models)
    program.optimizers = tuple(_without_late(facts, loops, program, named) for named in program.optimizers)
    named = (*program.models, *program.optimizers, *program.loaders, *program.schedulers)
    at_home, elsewhere = ([each for each in named if (each.unit is None) is is_home] for is_home in (True, False))
    each = (*_apart(facts, loops, program, at_home), *elsewhere)
    program.models = tuple(one for one in each if one.role is Role.MODEL)
    program.optimizers = tuple(one for one in each if one.role is Role.OPTIMIZER)
    program.loaders = tuple(one for one in each if one.role is Role.LOADER)
    program.schedulers = tuple(one for one in each if one.role is Role.SCHEDULER)


def _without_late(facts: Facts, loops: Loops, program: Program, named: Named) -> Named:
    """An object without what gives it its name again after its use, and makes no other one."""
    again = [each for each in named.statements[1:] if is_the_same(facts, each, named.target)]
    if not again or named.unit is not None:
        return named
    walk = _Walk(facts, loops, program, [])
    walk.run()
    late = [statement for statement in again if 0 < walk.used < statement.lineno]
    return replace(named, statements=tuple(statement for statement in named.statements if statement not in late))


def _apart(facts: Facts, loops: Loops, program: Program, named: Sequence[Named]) -> Sequence[Named]:
    assert program.home is not None
    pieces = {id(each): _pieces(facts, program.home, each) for each in named}
    if all(len(found) == 1 for found in pieces.values()):
        return named
    walk = _Walk(facts, loops, program, [piece for each in named for piece in pieces[id(each)]])
    walk.run()
    if walk.refused or len(walk.groups) < 2:
        return named
    found: list[Named] = []
    for each in named:
        for group in walk.groups:
            mine = [piece for piece in pieces[id(each)] if any(piece is other for other in group)]
            if len(mine) == len(pieces[id(each)]):
                found.append(each)
            elif mine:
                found.append(_joined(mine))
    return found


def _pieces(facts: Facts, home: Unit, named: Named) -> list[Named]:
    """What a name is given one after the other: statements that give it the same object belong together."""
    pieces: list[Named] = []
    for statement in named.statements:
        made: set[ast.AST] = set()
        for binding in facts.bindings_in(home):
            if binding.statement is statement and binding.target == named.target:
                made |= origins(binding.values, named.role) & named.origins
        if not made:
            return [named]
        new = replace(named, origins=frozenset(made), statements=(statement,))
        same = [piece for piece in pieces if piece.origins & new.origins]
        pieces = [piece for piece in pieces if piece not in same] + [_joined([*same, new])]
    return pieces or [named]


def _joined(pieces: Sequence[Named]) -> Named:
    statements = [statement for piece in pieces for statement in piece.statements]
    return replace(
        pieces[0],
        origins=frozenset().union(*(piece.origins for piece in pieces)),
        statements=tuple(sorted(statements, key=lambda s: s.lineno)),
    )


@dataclass(slots=True)
class _Walk:
    """A walk through the home, statement by statement, that ends a stage where something is used."""

    facts: Facts
    loops: Loops
    program: Program
    objects: list[Named]
    above: Mapping[ast.AST, frozenset[Role]] = field(default_factory=dict)
    groups: list[list[Named]] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    making: dict[ast.stmt, list[Named]] = field(default_factory=dict)
    drawing: dict[ast.stmt, list[Named]] = field(default_factory=dict)  # weights, or a layer given
    evaluating: frozenset[Unit] = frozenset()  # the functions that evaluate, also by others that they call
    used: int = 0  # the line of the first statement that trains or evaluates

    def run(self) -> None:
        """Fill the groups of objects that are prepared together."""
        assert self.program.home is not None
        loops = [loop.unit for loop in self.program.evaluation if isinstance(loop.unit, Function)]
        self.evaluating = frozenset(leading(self.facts, loops))
        for named in self.objects:
            for statement in _making(self.loops, named):
                self.making.setdefault(statement, []).append(named)
        tree = tree_of(self.facts, self.program.home)
        home = self.program.home
        body = home.tree.body if isinstance(home, Module) else getattr(home.node, "body", [])
        self._end(self._block(tree, body, [named for named in self.objects if not named.is_made]))

    def _block(self, tree: Tree, block: Sequence[ast.stmt], pending: list[Named]) -> list[Named]:
        """What is made at the end of a block and not prepared in it; `pending` is what is so at its start."""
        inside: dict[int, list[ast.stmt]] = {}
        for making in self.making:
            held = tree.in_block(making, block)
            if held is not None:
                inside.setdefault(id(held), []).append(making)
        for statement in block:
            made = inside.get(id(statement), [])
            is_used = self._is_use(statement)
            self.used = self.used or statement.lineno * is_used
            if is_used and any(named.is_made for named in pending):
                self._end(pending)
                pending = []
            else:
                early = [named for named in pending if named.role in self._prepared_above(tree, statement, block)]
                self._end(early)
                pending = [named for named in pending if named not in early]
            if not is_used:
                self.drawing[statement] = [named for named in pending if self._is_drawn(statement, named)]
            new = self._new(made, pending)
            if not new:
                continue
            if not is_used:
                pending = pending + self._without_early(tree, statement, block, new)
            elif any(making is statement for making in made):
                self.refused.append(_too_early(statement, max(self.making, key=lambda s: s.lineno)))
            else:
                self._inner(tree, statement, made, pending)
                pending = []
        return pending

    def _is_use(self, statement: ast.stmt) -> bool:
        """Whether a statement trains or evaluates."""
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            return False
        looping = {id(loop.node) for loop in (*self.program.training, *self.program.evaluation)}
        return self.loops.trains(statement) or any(
            id(node) in looping
            or (isinstance(node, ast.Call) and not self.evaluating.isdisjoint(self.facts.targets(node)))
            for node in walk(statement)
        )

    def ends(self, tree: Tree, statement: ast.stmt, block: Sequence[ast.stmt]) -> bool:
        """Whether all that is made above a statement is to be prepared above it."""
        return self._is_use(statement) or bool(self._prepared_above(tree, statement, block))

    def _is_drawn(self, statement: ast.stmt, named: Named) -> bool:
        """Whether a statement draws an object's weights anew, or gives it a layer: prepare comes below it."""
        return named.role is Role.MODEL and (
            draws_weights(self.facts, statement, named.origins)
            or gives_layer(self.facts, self.program, statement, named.origins)
        )

    def _prepared_above(self, tree: Tree, statement: ast.stmt, block: Sequence[ast.stmt]) -> set[Role]:
        return {role for node, roles in self.above.items() if tree.in_block(node, block) is statement for role in roles}

    def _without_early(
        self, tree: Tree, statement: ast.stmt, block: Sequence[ast.stmt], new: list[Named]
    ) -> list[Named]:
        """What a statement makes, but for the loaders that are prepared inside of it, above what needs them there."""
        if Role.LOADER not in self._prepared_above(tree, statement, block):
            return new
        for inside in blocks(statement):
            loaders: list[Named] = []
            for each in inside:
                if Role.LOADER in self._prepared_above(tree, each, inside):
                    self._end(loaders)
                    new = self._without_early(tree, each, inside, [named for named in new if named not in loaders])
                    loaders = []
                made = (named for named in new if all(tree.in_block(s, inside) is each for s in named.statements))
                loaders += [named for named in made if named.role is Role.LOADER]
        return new

    def _inner(self, tree: Tree, statement: ast.stmt, made: list[ast.stmt], pending: list[Named]) -> None:
        for block in blocks(statement):
            if any(tree.in_block(making, block) is not None for making in made):
                self._end(self._block(tree, block, pending))
                pending = []

    def _new(self, made: list[ast.stmt], pending: list[Named]) -> list[Named]:
        """The objects that some statements begin to make."""
        new: list[Named] = []
        for statement in made:
            for named in self.making[statement]:
                if any(named is other for group in self.groups for other in group):
                    self.refused.append(_made_anew(statement, named))
                elif not any(named is other for other in (*pending, *new)):
                    new.append(named)
        return new

    def _end(self, pending: list[Named]) -> None:
        """Prepare what was made, in the order in which it was given."""
        if any(named.is_made for named in pending):
            self.groups.append([named for named in self.objects if any(named is other for other in pending)])


def _making(loops: Loops, named: Named) -> list[ast.stmt]:
    """The statements that make an object; `model = train(model)` only gives it back."""
    made = [s for number, s in enumerate(named.statements) if number == 0 or not loops.trains(s)]
    return [*made, *named.filled]


def _spot(walk: _Walk, objects: Sequence[Named]) -> Spot:
    """After the last statement that makes one of the objects, draws its weights or gives it a layer, and moves."""
    assert walk.program.home is not None
    tree = tree_of(walk.facts, walk.program.home)
    statements = [statement for named in objects for statement in _making(walk.loops, named)]
    block = tree.common_block(statements)
    holding = {id(tree.in_block(statement, block)) for statement in statements}
    position = max(index for index, held in enumerate(block) if id(held) in holding)
    drawn = (i for i, held in enumerate(block) if any(named in objects for named in walk.drawing.get(held, ())))
    position = max([position, *drawn])
    models = {origin for named in objects if named.role is Role.MODEL for origin in named.origins}
    limit = next((i for i, held in enumerate(block) if i > position and walk.ends(tree, held, block)), len(block))
    position = moved_below(walk.facts, block[:limit], position, models)
    while position + 1 < len(block) and is_placing(walk.facts, walk.program, block[position + 1]):
        position += 1
    return Spot(_past_branches(tree, block[position]), "after", spaced=True)


def _past_branches(tree: Tree, statement: ast.stmt) -> ast.stmt:
    """What holds the `elif` of a branch that leaves the function: only what is made there comes to what follows."""
    above = tree.parents[statement]
    while isinstance(above, ast.If) and above.orelse == [statement] and isinstance(above.body[-1], ast.Return):
        statement, above = above, tree.parents[above]
    return statement


def _too_early(statement: ast.stmt, last: ast.stmt) -> Refusal:
    return Refusal(
        statement,
        "MIG104",
        f"the model is trained or evaluated here, before everything is made (line {last.lineno})",
        "make all models, optimizers and loaders before the first use of one of them",
    )


def _made_anew(statement: ast.stmt, named: Named) -> Refusal:
    return Refusal(
        statement,
        "MIG104",
        f"{named.target} is made or wrapped anew here, after it was used",
        f"do this before the first use of {named.target}, or give the result another name",
    )
