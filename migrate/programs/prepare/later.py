"""What a program makes or changes after something was prepared, so that the processes would no longer agree on it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known import data, same
from migrate.analysis.roles import Role, origins
from migrate.analysis.syntax import LOOPS, arguments, walk
from migrate.analysis.texts import text_of
from migrate.analysis.units import is_local
from migrate.programs.chance.in_step import is_in_step, libraries_of
from migrate.programs.chance.initial import draws_in
from migrate.programs.prepare.irregular import sets_requires_grad
from migrate.programs.prepare.replaced import replaced
from migrate.programs.prepare.seeded_again import is_seeded_again
from migrate.programs.processes.asked import sameness_of
from migrate.programs.processes.replicas import chance
from migrate.programs.program import Program, Refusal
from migrate.programs.reach.callees import reached
from migrate.programs.reach.outsiders import is_inside_model
from migrate.programs.reach.repeats import may_follow
from migrate.programs.values.lengths import is_after
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.analysis.state import Binding
    from migrate.analysis.units import Unit
    from migrate.programs.loops import Loops
    from migrate.programs.stages import Stage, Stages

_DEALING = frozenset({"collate_fn", "worker_init_fn"})
_SEEDED_BY = frozenset({"generator", "random_state"})


def after_the_first(
    facts: Facts, loops: Loops, program: Program, units: Collection[Unit], stages: Stages, prepared: Collection[ast.AST]
) -> Iterator[Refusal]:
    """What was right before anything was used, and is not afterwards; `prepared` is where the loaders were made."""
    units = [unit for unit in facts.units if unit in units]  # the first place is told, in the order of the source
    yield from _copied(facts, program)
    yield from _untrained(facts, loops, program, stages)
    yield from _made_elsewhere(facts, loops, program, units, stages)
    yield from _trained_before(facts, loops, program, stages)
    yield from replaced(facts, loops, program, units, stages)
    yield from _drawn_anew(facts, loops, program, units, stages)
    used = max(stages.first.end, stages.used)

    def is_late(node: ast.AST) -> bool:
        return True in is_after(facts, program, node, used)

    for stage in stages.each[1:]:
        yield from _drawn(facts, loops, program, stage, is_late, prepared)
    for stage in stages.elsewhere:
        yield from _drawn(facts, loops, program, stage, lambda node: may_follow(facts, loops, node), prepared)


def changed_between(facts: Facts, program: Program, units: Collection[Unit], first: Stages, second: Stages) -> bool:
    """Whether a model is frozen, or its weights are drawn, between the place where it is prepared and a later one.

    On a wrapped model freezing comes too late, and on a GPU other weights are drawn than on the CPU.
    """
    for named in program.models:
        early, late = first.of(named.origins).end, second.of(named.origins).end
        for node in (node for unit in units if not is_inside_model(facts, unit) for node in facts.own(unit)):
            draws = isinstance(node, ast.Call) and draws_in(facts, node, named.origins)
            if draws or sets_requires_grad(facts, node):
                if True in is_after(facts, program, node, early) and True not in is_after(facts, program, node, late):
                    return True
    return False


def _untrained(facts: Facts, loops: Loops, program: Program, stages: Stages) -> Iterator[Refusal]:
    """A trained model's name is given to a model that no optimizer knows, and that is trained on all the same."""
    home = program.home
    assert home is not None
    trained = {named.target for named in program.models}
    for binding in facts.bindings_in(home):
        found = origins(binding.values, Role.MODEL)
        if binding.target in trained and found and not found & program.model_origins:
            if stages.first.end < binding.statement.lineno and _is_trained_on(facts, loops, program, binding):
                yield Refusal(
                    binding.statement,
                    "MIG902",
                    f"{binding.target} is another model from here on, and no optimizer has its parameters",
                    "make the optimizer after the model, with its parameters",
                )
                return


def _made_elsewhere(
    facts: Facts, loops: Loops, program: Program, units: Collection[Unit], stages: Stages
) -> Iterator[Refusal]:
    """A prepared model's name is given to what code that is not seen makes of it, and that is trained on.

    What it makes goes around the wrapper, or takes it for the model; loaders that it makes of a prepared one
    (`model, optimizer, loader = engine.make_private(model, optimizer, loader)`) are not prepared.
    """
    for binding in (each for unit in units if not is_inside_model(facts, unit) for each in facts.bindings_in(unit)):
        call = getattr(binding.statement, "value", None)
        if origins(binding.values, Role.MODEL) or not isinstance(call, ast.Call) or facts.targets(call):
            continue
        given = {o for each in arguments(call) if text_of(each) == binding.target for o in _models(facts, each)}
        mine = given & program.model_origins
        if mine and True in is_after(facts, program, binding.statement, stages.of(mine).end):
            if _is_trained_on(facts, loops, program, binding) or not _trains_in(facts, loops, binding.unit):
                yield Refusal(
                    binding.statement,
                    "MIG902",
                    f"{text_of(call.func)}() makes something of {binding.target} here that is not known, after "
                    "that was prepared, and it is trained on",
                    "convert by hand: what it makes is to be prepared, with all else that it gives back",
                )
                return


def _models(facts: Facts, node: ast.expr) -> set[ast.AST]:
    return origins(facts.values(node), Role.MODEL)


def _trains_in(facts: Facts, loops: Loops, unit: Unit) -> list[ast.Call]:
    """The calls of a unit that train, or lead to training."""
    return [node for node in facts.own(unit) if isinstance(node, ast.Call) and loops.trains(node)]


def _is_trained_on(facts: Facts, loops: Loops, program: Program, binding: Binding) -> bool:
    """Whether something below a binding trains by its name, before that is given to a trained model on every way."""
    home, line = binding.unit, binding.statement.lineno
    trains = _trains_in(facts, loops, home)
    first = min((n.lineno for n in trains if n.lineno > line and _is_read_by(facts, n, binding.target)), default=0)
    tree = facts.tree(binding.statement)
    return bool(first) and not any(
        again.target == binding.target
        and line < again.statement.lineno < first
        and origins(again.values, Role.MODEL) & program.model_origins
        and tree.in_block(binding.statement, tree.block(again.statement)) is not None
        for again in facts.bindings_in(home)
    )


def _is_read_by(facts: Facts, call: ast.Call, name: str) -> bool:
    """Whether the statement around a call that trains, or what it leads to, reads something by its name."""
    tree = facts.tree(call)
    above = [tree.statement(call), *(node for node in tree.up(call) if isinstance(node, LOOPS))]
    entered = (unit for node in ast.walk(above[-1]) if isinstance(node, ast.Call) for unit in facts.targets(node))
    inner = (n for unit in reached(facts, entered) if not is_local(unit, name) for n in facts.own(unit))
    return any(
        isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == name
        for node in (*ast.walk(above[-1]), *inner)
    )


def _trained_before(facts: Facts, loops: Loops, program: Program, stages: Stages) -> Iterator[Refusal]:
    """A loop of the home whose models all get the names by which they would be prepared below it."""
    for loop in program.training:
        trained = {model for optimizer in loops.trained_by(loop) for model in facts.models_of.get(optimizer, ())}
        named = [each for each in program.models if each.origins & trained and loop.unit is program.home]
        found = [stages.of(each.origins & trained) for each in named]
        if found and all(stage.unit is program.home and stage.end >= loop.node.lineno for stage in found):
            line = min(stage.end for stage in found)
            yield Refusal(
                loop.node,
                "MIG104",
                f"the model is trained here, above line {line}, where {named[0].target} is made and would be prepared",
                "give what is made there a name of its own, or let the training run what is made by that name above",
            )
            return


def _copied(facts: Facts, program: Program) -> Iterator[Refusal]:
    """`copy.deepcopy(model)` that is trained itself: another model, which nothing prepares."""
    for named in program.optimizers:
        for origin in named.origins:
            made = facts.source(origin)
            given = arguments(made) if isinstance(made, ast.Call) else []
            for node in (inner for each in given for inner in walk(each)):
                if isinstance(node, ast.Attribute) and node.attr in ("parameters", "named_parameters"):
                    if any(_is_copy(facts, program, value.origin) for value in facts.values(node.value)):
                        yield Refusal(
                            made,
                            "MIG902",
                            f"{named.target} trains a copy of another model, which would not be prepared",
                            "make the model by its constructor and load the state of the other one",
                        )
                        return


def _is_copy(facts: Facts, program: Program, origin: ast.AST | None) -> bool:
    if not isinstance(origin, ast.Call) or not facts.called(origin) & {"copy.deepcopy", "copy.copy"}:
        return False
    return any(origins(facts.values(given), Role.MODEL) & program.model_origins for given in origin.args)


def _drawn_anew(
    facts: Facts, loops: Loops, program: Program, units: Collection[Unit], stages: Stages
) -> Iterator[Refusal]:
    """Weights that are drawn once the model is prepared: nobody gives those of one process to the others."""
    if program.one_seed is not None or "torch" not in chance(facts, loops, program):
        return
    alike = sameness_of(facts, program, trusting=False)
    for node in (node for unit in units if not is_inside_model(facts, unit) for node in facts.own(unit)):
        if not isinstance(node, ast.Call) or any(is_inside_model(facts, unit) for unit in facts.targets(node)):
            continue
        for named in program.models:
            end = stages.of(named.origins).end
            is_late = draws_in(facts, node, named.origins) and True in is_after(facts, program, node, end)
            if is_late and not is_seeded_again(facts, loops, alike, node, {"torch"}):
                yield Refusal(
                    node,
                    "MIG104",
                    f"weights of {named.target} are drawn anew here, after that was prepared: each process would "
                    "draw others",
                    "make a new model here, or call torch.manual_seed() at the beginning of the program",
                )
                return


def _drawn(
    facts: Facts,
    loops: Loops,
    program: Program,
    stage: Stage,
    is_late: Callable[[ast.AST], bool],
    prepared: Collection[ast.AST],
) -> Iterator[Refusal]:
    """Data that are drawn at random after a training: each process may be at another place of its random stream."""
    for named in stage.objects:
        made = [facts.source(origin) for origin in named.origins if origin in prepared]
        given = [each for call in made if isinstance(call, ast.Call) for each in _data(call)]
        sets = [value.origin for each in given for value in facts.values(each) if value.origin is not None]
        sources = [*facts.once(Sources).behind(given), *sets]
        for node in (inner for each in sources for inner in ast.walk(each)):
            if isinstance(node, ast.Call) and _draws(facts, node) and is_late(node):
                alike, streams = sameness_of(facts, program, trusting=False), libraries_of(facts, node)
                if is_seeded_again(facts, loops, alike, node, streams):
                    continue
                if not is_in_step(facts, loops, program, node, chance(facts, loops, program)):
                    yield Refusal(
                        node,
                        "MIG104",
                        f"the data of {named.target} are drawn at random here, after a training: each process may draw "
                        "others",
                        "draw them before the first training, or call torch.manual_seed() right before this",
                    )
                    return


def _data(call: ast.Call) -> Iterator[ast.expr]:
    """What a loader is made of, without the functions that it calls when it deals batches out: these may draw."""
    yield from call.args
    yield from (keyword.value for keyword in call.keywords if keyword.arg not in _DEALING)


def _draws(facts: Facts, call: ast.Call) -> bool:
    if any(keyword.arg in _SEEDED_BY for keyword in call.keywords):
        return False
    names = facts.called(call) - frozenset().union(*same.SEEDS.values())
    return any(name in data.SPLITS or name.startswith(data.RANDOM_PREFIXES) for name in names)
