"""A training program: the models, optimizers, loaders and schedulers of loops that belong together, and their home.

The home is the unit (module, function, or the `__init__` of a trainer) where all of them have a name. There the
accelerator is created and `prepare` is called.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from migrate.analysis.roles import Role, origins, stands_in
from migrate.analysis.syntax import line_of, start_of
from migrate.analysis.units import Function, Module, Unit, module_of
from migrate.programs.along import ALONE, Along
from migrate.programs.home.anew import beside, made_anew
from migrate.programs.home.ascents import ascent
from migrate.programs.home.elsewhere import parted
from migrate.programs.home.homeless import why_homeless
from migrate.programs.home.homes import Home, Wanted, find, maker
from migrate.programs.home.looks import only_looks
from migrate.programs.home.naming import Named
from migrate.programs.home.outer import widened
from migrate.programs.home.own_steps import of_layers
from migrate.programs.home.reading import needed
from migrate.programs.home.siblings import are_siblings
from migrate.programs.kept import Kept
from migrate.programs.reach.outsiders import importing, outsiders
from migrate.programs.reach.self_training import wholes
from migrate.programs.reach.unnamed import files, listed, unnamed, way_out
from migrate.programs.training import unstepped
from migrate.programs.training.flags import Flagged, flagged
from migrate.programs.training.loose import beside_a_model, is_alone
from migrate.programs.training.too_soon import too_soon
from migrate.programs.training.trained_again import joined
from migrate.programs.training.turning import Turning, turnings
from migrate.programs.training.wholes import held_by, trained

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.prepare.visitors import Visitor
    from migrate.programs.processes.one_seed import OneSeed
    from migrate.programs.training.handed import Handed


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a program stays as it is: the place, the reason, and the way out."""

    node: ast.AST
    code: str
    why: str
    way_out: str
    unnamed: tuple[str, ...] = ()  # the files that would have to be named as well


@dataclass(eq=False, slots=True)
class Program(Kept):
    """One training program."""

    SAID: ClassVar[frozenset[str]] = frozenset({"refusals", "doubts"})
    training: tuple[LoopFact, ...]
    evaluation: tuple[LoopFact, ...] = ()
    home: Unit | None = None  # where prepare is called
    start: Unit | None = None  # where the accelerator is made: home, or what makes the objects that home is given
    entry: ast.AST | None = None  # in `start`, the call that leads to home, where that is another unit
    models: tuple[Named, ...] = ()
    optimizers: tuple[Named, ...] = ()
    loaders: tuple[Named, ...] = ()  # every loader that has a name at home, in order of creation
    schedulers: tuple[Named, ...] = ()
    turnings: tuple[Turning, ...] = ()  # training loops that evaluate, too, on other loaders of a dictionary
    flagged: tuple[Flagged, ...] = ()  # training loops that evaluate, too, on loaders of their own
    outsiders: Mapping[Function, str] = field(default_factory=dict)  # functions that others call, too, and where
    refusals: list[Refusal] = field(default_factory=list)
    doubts: list[Refusal] = field(default_factory=list)  # what its conversion rests on and is only likely
    raw: frozenset[ast.AST] = frozenset()  # where the models were made that are not prepared: they train themselves
    others: frozenset[Unit] = frozenset()  # where other programs of the run begin
    visitors: tuple[Visitor, ...] = ()  # files that enter its functions with an accelerator of their own
    one_seed: OneSeed | None = None  # that all processes take, where the program sets none
    along: Along = ALONE  # what other programs do in lines that it shares with them
    annotates: bool = False  # a comment says so in the code
    is_for_tpu: bool = False  # what makes a TPU wait is told
    handed: Handed | None = None  # what the program said of several processes, before it was made ready
    unready: bool = False  # something kept it from being made ready, which is told
    said: tuple[str, ...] = ()  # what a person must know of mixed precision that was apex's

    @property
    def given(self) -> set[ast.AST]:
        """Where the objects were made that home is given: elsewhere they go on as they were before prepare."""
        named = (*self.models, *self.optimizers, *self.loaders)
        return {origin for each in named if each.is_given for origin in each.origins}

    @property
    def hands_up(self) -> bool:
        """Whether the home makes all of its objects, and the accelerator is made by what calls it and goes on."""
        return self.home is not self.start and not self.given

    @property
    def training_loaders(self) -> set[ast.AST]:
        """Where the loaders were made that training loops run over, and train on."""
        return {origin for loop in self.training for origin in loop.loaders} - self.kept_whole

    @property
    def partly_prepared(self) -> set[ast.AST]:
        """Where the loaders were made of which only the one that is trained on is prepared."""
        return {turning.origin for turning in self.turnings}

    @property
    def kept_whole(self) -> set[ast.AST]:
        """Where the loaders were made that a training loop only evaluates on, or of which all take whole batches."""
        apart = [*(turning.others for turning in self.turnings), *(loop.whole for loop in self.training)]
        return {origin for found in self.flagged for origin in found.evaluated}.union(*apart)

    @property
    def met_in_both(self) -> set[ast.AST]:
        """Where the loaders were made whose batches meet, in one loop, those of others that are not prepared."""
        return self.partly_prepared.union(*(found.loop.loaders for found in self.flagged))

    @property
    def model_origins(self) -> set[ast.AST]:
        """Where the models were made that are trained."""
        return {origin for model in self.models for origin in model.origins}

    @property
    def statement(self) -> ast.stmt:
        """The first statement of the home that makes one of the objects."""
        named = (each for each in (*self.optimizers, *self.models, *self.loaders) if each.unit is None)
        return next(statement for each in named for statement in each.statements)

    @property
    def module(self) -> Module:
        """The module of the home, or of the first loop."""
        return module_of(self.home if self.home is not None else self.training[0].unit)


def programs(facts: Facts, loops: Loops, *, review: bool = False) -> list[Program]:
    """The training programs of the named files; `review`: what is likely there is taken for there, and doubted."""
    found: list[Program] = []
    for group in loops.together():
        program = Program(tuple(group))
        _settle(facts, loops, program, review=review)
        found.append(program)
    _keep_apart(facts, found)
    merged = _merged(facts, loops, found, review=review)
    for program in merged:
        program.refusals += _beside(program, merged)
    return joined(facts, merged, lambda one, other: _joined(facts, loops, one, other, review=review), _split)


def _keep_apart(facts: Facts, found: Sequence[Program]) -> None:
    """Several programs that one function starts make an accelerator each, in their homes."""
    starts = [program.start for program in found]
    for program in found:
        if program.hands_up and not program.raw and starts.count(program.start) > 1:
            program.start, program.entry = program.home, None
            program.outsiders = outsiders(facts, program)


def _beside(program: Program, found: Sequence[Program]) -> list[Refusal]:
    """Where two programs with homes of their own would each make an accelerator in one place."""
    if program.home is program.start or (program.hands_up and not program.raw):
        return []
    beside = (other for other in found if other is not program and other.start is program.start)
    other = next((other for other in beside if not are_siblings(program, other)), None)
    if other is None:
        return []
    why = f"this and the training at line {other.training[0].node.lineno} of {module_of(other.training[0].unit).path}"
    return [
        Refusal(
            program.training[0].node,
            "MIG901",
            f"{why} are prepared in different functions, and would each make an accelerator",
            "make the models and the optimizers of both in one function, and hand them on",
        )
    ]


def _merged(facts: Facts, loops: Loops, found: list[Program], *, review: bool) -> list[Program]:
    """Programs that share a home are one: it gets one accelerator and one prepare."""
    merged: list[Program] = []
    for program in found:
        other = next((p for p in merged if p.home is not None and p.home is program.home), None)
        if other is None:
            merged.append(program)
            continue
        merged[merged.index(other)] = _joined(facts, loops, other, program, review=review)
    return merged


def _joined(facts: Facts, loops: Loops, one: Program, other: Program, *, review: bool) -> Program:
    """One program of two."""
    both = Program(one.training + other.training)
    both.refusals = [r for r in (*one.refusals, *other.refusals) if r.code != "MIG901"]
    _settle(facts, loops, both, review=review)
    return both


def _split(program: Program, why: str) -> Refusal:
    way_out = "make the model and all of its optimizers in one function, and hand them on"
    return Refusal(program.training[0].node, "MIG901", why, way_out)


def _settle(facts: Facts, loops: Loops, program: Program, *, review: bool) -> None:
    """Find the home, and what has a name there."""
    optimizers = set().union(*(loops.trained_by(loop) for loop in program.training))
    first = program.training[0].node
    if not optimizers:
        program.refusals.append(
            Refusal(
                first,
                "MIG902",
                unstepped.reason(loops, program.training),
                unstepped.way_out(facts, program.training),
            )
        )
        return
    if (other := unstepped.by_hand(loops, program.training)) is not None:
        way_out = "train with a torch.optim optimizer here, too, or give this loop a DataLoader of its own"
        program.refusals.append(Refusal(other.node, "MIG902", unstepped.reason(loops, [other]), way_out))
    models = trained(facts, loops, program.training, optimizers)
    if review and not models and any(map(stands_in, optimizers)):
        models = _called(facts, program)  # it trains what the loop calls: what else would be given with it
    if likely := sorted(filter(stands_in, optimizers | models | program.training_loaders), key=start_of):
        (program.doubts if review else program.refusals).append(_unseen(facts, first, likely))
        if not review:
            return
    is_bare = all(is_alone(facts, origin) for origin in optimizers) and not program.training_loaders
    if not models and not is_bare:
        program.refusals.append(_unknown_model(facts, program, optimizers))
        return
    program.turnings = turnings(facts, program.training)
    by_turns = [turning.loop for turning in program.turnings]
    program.flagged = flagged(facts, [loop for loop in program.training if loop not in by_turns])
    by_key = frozenset(turning.origin for turning in program.turnings)
    units = frozenset(loop.unit for loop in program.training)
    wanted = Wanted(optimizers, models, program.training_loaders, by_key, units)
    home = find(facts, wanted)
    home, wanted = _held_by_wholes(facts, home, wanted)
    home, program.loaders = parted(facts, loops, wanted, home)
    if (anew := made_anew(facts, loops, program.training, wanted, home)) is not None:
        home, program.loaders, program.optimizers = anew.home, anew.loaders, anew.optimizers
    if home is None and (home := of_layers(facts, wanted, program.training)) is not None:
        program.raw = frozenset(wanted.models)
    if home is None:
        program.refusals.append(_homeless(facts, loops, program, wanted))
        return
    _settle_at(facts, loops, program, home, wanted)


def _settle_at(facts: Facts, loops: Loops, program: Program, home: Home, wanted: Wanted) -> None:
    """Take what has a name at a home, beside what is prepared elsewhere."""
    program.home, program.start, program.entry = home.unit, home.start, home.entry
    is_whole = not (home.is_wide or program.loaders or program.optimizers)  # nothing is prepared elsewhere
    if home.start is home.unit and is_whole and (init := maker(facts, home.unit, wanted.trains)) is not None:
        program.start = init
    elif home.start is home.unit:
        program.start, program.entry = ascent(facts, home.unit, program.training)
        if not home.is_wide:
            program.start, program.entry = widened(facts, program.start, program.entry, wanted)
    program.outsiders = outsiders(facts, program)
    models = wanted.models - program.raw
    lasting = wanted.optimizers.difference(*(named.origins for named in program.optimizers))
    program.optimizers = (*home.named(facts, Role.OPTIMIZER, lasting), *program.optimizers)
    program.models = home.named(facts, Role.MODEL, models)
    program.refusals += _unnamed_models(facts, program, models)
    program.loaders = (*needed(facts, program, unstepped.without_theirs(facts, loops, program, home)), *program.loaders)
    at_home = (
        named
        for named in home.named(facts, Role.SCHEDULER, None)
        if any(origins(facts.over(o), Role.OPTIMIZER) & wanted.optimizers for o in named.origins)
    )
    program.schedulers = (*at_home, *beside(facts, program.optimizers))
    mine = {origin for loader in program.loaders for origin in loader.origins}
    program.evaluation = tuple(
        loop for loop in loops.evaluation if loop.loaders & mine and not only_looks(facts, loops, program, loop)
    )


def _held_by_wholes(facts: Facts, home: Home | None, wanted: Wanted) -> tuple[Home | None, Wanted]:
    """The home where models that have no name are trained by a model around them, which has one."""
    models = wanted.models
    nameless = models if home is None else models - _with_parts(facts, home, models)
    holding = (models - nameless) | wholes(facts, nameless) if nameless else models
    holding = holding if holding != models else (models - nameless) | held_by(facts, nameless, wanted.optimizers)
    if holding == models:
        return home, wanted
    around = replace(wanted, models=holding)
    found = find(facts, around)
    is_better = found is not None and (home is None or holding <= _with_parts(facts, found, holding))
    return (found, around) if is_better else (home, wanted)


def _with_parts(facts: Facts, home: Home, models: set[ast.AST]) -> set[ast.AST]:
    """The models that have a name at home, with their parts."""
    named = {origin for each in home.named(facts, Role.MODEL, models) for origin in each.origins}
    return named | facts.parts(named)


def _called(facts: Facts, program: Program) -> set[ast.AST]:
    """Where the models were made that training loops call."""
    calls = (node for loop in program.training for node in ast.walk(loop.node) if isinstance(node, ast.Call))
    return {origin for call in calls for origin in origins(facts.values(call.func), Role.MODEL)}


def _unseen(facts: Facts, first: ast.AST, likely: Sequence[ast.AST]) -> Refusal:
    """Objects that are likely there: parameters say so that nobody fills, or a class of which nobody makes one."""
    origin = likely[0]
    place = f"{facts.file(origin).path}:{line_of(origin)}"
    if isinstance(origin, ast.ClassDef):
        why = f"nothing that was read makes an object of the class {origin.name} ({place})"
        return Refusal(first, "MIG907", why, f"name the files that make the {origin.name}, too")
    assert isinstance(origin, ast.arg)
    unit = facts.unit(origin)
    name = f"{unit.name}()" if isinstance(unit, Function) else unit.path
    those = [other.arg for other in likely if isinstance(other, ast.arg) and facts.unit(other) is unit]
    what = " and ".join(f"`{each}`" for each in those)
    parameters, verb = ("parameters", "are") if len(those) > 1 else ("parameter", "is")
    why = f"the {parameters} {what} of {name} ({place}) {verb} filled by nothing that was read"
    if isinstance(unit, Function) and (caller := importing(facts, unit)) is not None:
        return Refusal(first, "MIG907", why, _with_caller(facts, caller), (caller,))
    return Refusal(first, "MIG907", why, f"name the files that call {name}, too")


def _unknown_model(facts: Facts, program: Program, optimizers: Iterable[ast.AST]) -> Refusal:
    loop = program.training[0]
    why = "what the optimizer trains is not known"
    if (early := too_soon(facts, optimizers)) is not None:
        return Refusal(loop.node, "MIG902", f"{why}: {early}", "move the definition above the line that asks for it")
    if isinstance(loop.unit, Function) and not facts.callers(loop.unit):
        why += f": nothing that was read calls {loop.unit.name}()"
        if (caller := importing(facts, loop.unit)) is not None:
            return Refusal(loop.node, "MIG902", why, _with_caller(facts, caller), (caller,))
    way = "pass model.parameters() of a model made in the named files to the optimizer"
    return Refusal(loop.node, "MIG902", why, way)


def _with_caller(facts: Facts, caller: str) -> str:
    return way_out((caller, *(module.path for module in facts.editable)), (caller,))


def _unnamed_models(facts: Facts, program: Program, models: set[ast.AST]) -> list[Refusal]:
    """What is trained and belongs to no model with a name at home."""
    assert program.home is not None
    left = models - program.model_origins
    if left:
        inside = program.statement
        parts = facts.parts(program.model_origins)
        left = {o for o in left if o not in parts or facts.singles.again(o, program.home, inside) is not None}
    return [
        Refusal(
            program.training[0].node,
            "MIG901",
            f"an optimizer trains what is made at {facts.file(origin).path}:{getattr(origin, 'lineno', 0)}, which has "
            "no name beside the optimizer",
            "give each model that is trained a name where the optimizer is made",
        )
        for origin in sorted(left, key=start_of)[:1]
    ]


def home_anywhere(facts: Facts, loops: Loops, training: Iterable[LoopFact]) -> Unit | None:
    """The home that loops would have if every file were named."""
    optimizers: set[ast.AST] = set().union(*(loops.trained_by(loop) for loop in training))
    models: set[ast.AST] = set().union(*(facts.models_of.get(origin, set()) for origin in optimizers))
    loaders = {origin for loop in training for origin in loop.loaders}
    if not (optimizers and models):
        return None
    home = find(facts, Wanted(optimizers, models, loaders), everywhere=True)
    return home.unit if home is not None else None


def _homeless(facts: Facts, loops: Loops, program: Program, wanted: Wanted) -> Refusal:
    first = program.training[0].node
    found = find(facts, wanted, everywhere=True)
    if found is not None:
        paths = files(facts, loops, program.training, found.unit, found.start)
        missing = unnamed(facts, paths)
        why = f"the model, the optimizer and the loader come together in {module_of(found.unit).path}"
        also = f"the program needs {listed(missing)}"
        return Refusal(first, "MIG901", f"{why}: {also}", way_out(paths, missing), missing)
    if wanted.models and wanted.loaders and (apart := beside_a_model(facts, wanted.optimizers)) is not None:
        return Refusal(apart[0], "MIG902", *apart[1:])
    why, way = why_homeless(facts, wanted)
    return Refusal(first, "MIG901", why, way)
