"""Training without a DataLoader: every process trains on what the program gives it, and nothing deals the data out.

That is right as long as all processes take the same steps. With every source of chance seeded they all do the same;
otherwise each draws something of its own, the gradients are averaged, and nothing may be decided by what only one of
them has seen.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from migrate.analysis.known import distributed
from migrate.analysis.known import same as known
from migrate.analysis.roles import Role, origins, roles
from migrate.analysis.syntax import arguments
from migrate.analysis.units import Class
from migrate.programs.chance.draws import Draws
from migrate.programs.chance.lasting import lasting
from migrate.programs.chance.seeds import (
    BESIDE,
    ENVIRONMENT,
    GENERATOR,
    NUMBER,
    OWN_SEED,
    is_seeded_above,
    is_too_late,
    unseeded,
)
from migrate.programs.chance.splits import Choice, chosen_data
from migrate.programs.marker import is_main
from migrate.programs.processes.alike import sets_rate
from migrate.programs.processes.asked import sameness_of
from migrate.programs.processes.clocks import by_system, decided, own_of
from migrate.programs.processes.first_batch import first_runs, set_by_batch
from migrate.programs.processes.one_seed import OneSeed, possible, seed_of_splits
from migrate.programs.program import Program, Refusal
from migrate.programs.schedule.schedulers import Pace, schedules
from migrate.programs.training.loose import trained_alone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact, Loops
    from migrate.programs.processes.sameness import Sameness


_NONE: Mapping[ast.Call, Choice] = MappingProxyType({})


def without_loader(program: Program) -> tuple[LoopFact, ...]:
    """The training loops of a program that run over no DataLoader."""
    return tuple(loop for loop in program.training if not loop.loaders)


def decide_seed(
    facts: Facts, loops: Loops, program: Program, orders: Mapping[ast.Call, Choice] = _NONE
) -> OneSeed | None:
    """The seed that all processes of a program take, where it has none of its own and needs one.

    `orders`: what else must be drawn alike where loaders deal data out.
    """
    if program.training_loaders:
        apart = splits_apart(facts, loops, program, orders)
        return seed_of_splits(facts, program, apart) if apart else None
    replicas = without_loader(program)
    missing = chance(facts, loops, program) if replicas else []
    if not missing:
        return None
    seed = possible(facts, program, missing)
    if seed is None or any(loop.whole for loop in replicas) or Draws(facts, program).must_agree(loops):
        return seed
    return seed if any(_parting(facts, loops, program, replicas, trusting=False)) else None


def splits_apart(
    facts: Facts, loops: Loops, program: Program, orders: Mapping[ast.Call, Choice] = _NONE
) -> dict[ast.Call, Choice]:
    """Where each process would have, or choose, data of its own, for the loaders that are then dealt out."""
    chosen = {**chosen_data(facts, loops, program), **orders} if program.training_loaders else {}
    if program.training_loaders:
        chosen |= dict.fromkeys(first_runs(facts, loops, program), Choice("torch"))
        chosen |= {call: Choice(library) for call, library in lasting(facts, loops, program).items()}
    missing = chance(facts, loops, program) if chosen else []
    return {
        call: choice
        for call, choice in chosen.items()
        if (choice.library in missing or is_too_late(facts, program, call, choice.library))
        and not is_seeded_above(facts, call, choice.library)
    }


def differs(facts: Facts, loops: Loops, program: Program) -> bool:
    """Whether each process trains on what it draws itself, and only the gradients are shared."""
    if program.one_seed is not None or not without_loader(program):
        return False
    return Draws(facts, program).own(chance(facts, loops, program))


def chance(facts: Facts, loops: Loops, program: Program) -> list[str]:
    """What a program draws without having seeded it."""
    known = facts.once(_Chances).known
    loops_of = tuple(loop.node for loop in program.training)
    key = (program.models, program.home, program.start, program.module, loops_of)
    if key not in known:
        sameness, clocks = (sameness_of(facts, program, trusting=trusting) for trusting in (False, True))
        known[key] = tuple(unseeded(facts, loops, program, sameness, clocks))
    return [*known[key]]


class _Chances:
    """What programs draw, as they are now: many ask, and all calls of a program's files are looked at for it."""

    def __init__(self, _: Facts) -> None:
        self.known: dict[tuple[object, ...], tuple[str, ...]] = {}


ON_CPU = "True"
_SEVERAL = 3  # decisions that go by chance are told of one by one


def loose_tensors(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """What is trained and belongs to no model, where the processes have other data."""
    found = trained_alone(facts, program)
    if not found or (not program.training_loaders and not differs(facts, loops, program)):
        return
    for node in found:
        text = ast.unparse(node)
        if Role.TENSOR in roles(facts.values(node)):
            what, way = f"`{text}`, a tensor that belongs to no model", "make it an nn.Parameter of the model"
        else:
            what, way = f"`{text}`, of which nothing is known", "pass model.parameters() of a model made in named files"
        why = f"the optimizer trains {what}: processes would not share its gradients"
        yield Refusal(node, "MIG902", why, way if program.training_loaders else f"seed the program first, or {way}")


def other_sources(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Loops over what another library makes: some put their batches on a GPU, or deal them out, by themselves."""
    for loop in without_loader(program):
        iterated = ast.walk(loop.node.iter) if isinstance(loop.node, (ast.For, ast.AsyncFor)) else ()
        values = [value for node in iterated for value in facts.values(node) if value.role is Role.FEED]
        if values:
            names = {value.name for value in values}
            if not all(name.startswith(_LEFT_AS_THEY_ARE) for name in names):
                yield Refusal(
                    loop.node,
                    "MIG903",
                    f"the loop runs over {min(names)}, which prepare cannot take",
                    "put the data into a torch.utils.data.DataLoader and loop over it",
                )


#: Sources of batches that every process may have whole: they give what they are asked for, where they are asked to.
_LEFT_AS_THEY_ARE = ("torchtext.", "torch_geometric.", "webdataset.", "dgl.")


def drawn_apart(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Whole batches that each process would draw in an order of its own."""
    for loop in program.training if program.one_seed is None else ():
        if loop.whole and (missing := chance(facts, loops, program)):
            yield Refusal(
                loop.node,
                "MIG903",
                "batches of a loader are taken here together with rows that the program deals out itself, so every "
                f"process must draw the same, and {' and '.join(missing)} is not seeded",
                "seed the program at its beginning, or let one data set give both",
            )


def raw_models(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Layers that train themselves, where processes would have others: nobody averages their gradients."""
    missing = chance(facts, loops, program) if program.raw and program.one_seed is None else []
    if missing:
        told, way = told_of(missing)
        why = f"models that make their own optimizers are not prepared, and each process would train others ({told})"
        way = f"{way}, or make each model and its optimizer under names of their own"
        yield Refusal(program.training[0].node, "MIG901", why, way)


def set_apart(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Parameters that a layer sets by the batch it sees, where each process sees another."""
    found = set_by_batch(facts, program)
    if not found or (not program.training_loaders and not differs(facts, loops, program)):
        return
    is_same = program.one_seed is not None or not chance(facts, loops, program)
    if not is_same or not first_runs(facts, loops, program):
        yield Refusal(
            found[0],
            "MIG122",
            f"{ast.unparse(found[0]).partition('(')[0]} sets a parameter by the batch that the model sees: each "
            "process would set another, and nobody shares them",
            "seed the program, and run the model once on a batch of a loader of its own before the training",
        )


def dealt_out_before(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Whole batches in a program that distributed itself: there each process had rows that went with its own share."""
    for loop in program.training if program.handed is not None else ():
        if loop.whole:
            yield Refusal(
                loop.node,
                "MIG103",
                "batches of a loader meet rows here by their number or their order, and both were each process's own",
                "let the data set give them with each sample, so that the loader brings both",
            )


def parting_replicas(facts: Facts, loops: Loops, program: Program) -> Iterator[Refusal]:
    """Decisions by which one process would train on, and another not."""
    replicas = without_loader(program)
    if not replicas or any(True for _ in facts.calls_to(distributed.RPC)):
        return  # the processes of RPC have work of their own: that is told
    if any(refusal.code == "MIG907" for refusal in program.refusals):
        return  # what fills its parameters was not read: neither are its loader and its seed
    missing = chance(facts, loops, program)
    is_same = not missing or program.one_seed is not None
    found = list(_parting(facts, loops, program, replicas, trusting=is_same))
    if missing and found and is_same and not any(_parting(facts, loops, program, replicas, trusting=False)):
        return
    if is_same:
        yield from (by_system(facts, node, own_of(facts, program, node)) for node in found)
        return
    for node in found[:_SEVERAL]:  # all for one reason, with one way out
        yield by_chance(node, missing, more=max(len(found) - _SEVERAL, 0) if node is found[0] else 0)


def _parting(
    facts: Facts, loops: Loops, program: Program, replicas: tuple[LoopFact, ...], *, trusting: bool
) -> Iterator[ast.AST]:
    """The places where processes would part; `trusting`: all of them draw the same."""
    sameness = sameness_of(facts, program, trusting=trusting)
    told: set[ast.AST] = set()
    for node in _together(facts, loops, program, replicas):
        for test in sameness.parting(node):
            if test not in told and not _is_dissolved(test, sameness):
                told.add(test)
                yield test
    yield from (use.node for use in facts.calls_to(known.ALARMS))
    for schedule in schedules(facts, loops, program):
        told_where = schedule.steps if schedule.pace is Pace.TOLD else schedule.on_metric
        for step in told_where:
            if not all(map(sameness.same, arguments(step))):
                yield step
    for statement in learning_rates(facts, program):
        if not sameness.same(statement.value) or not sameness.alike(statement, deep=True):
            yield statement


def _is_dissolved(test: ast.AST, sameness: Sameness) -> bool:
    """Whether nothing but a branch on the main process keeps the others away: it goes where all must enter it."""
    if not isinstance(test, ast.If) or not is_main(test.test) or test.orelse:
        return False
    parts = test.test.values if isinstance(test.test, ast.BoolOp) else [test.test]
    jumps = (ast.Return, ast.Break, ast.Continue)
    return all(is_main(part) or sameness.same(part) for part in parts) and not any(
        isinstance(inner, jumps) for inner in ast.walk(test)
    )


def _together(facts: Facts, loops: Loops, program: Program, replicas: tuple[LoopFact, ...]) -> Iterator[ast.AST]:
    """What all processes must do equally often: backward, the steps, and forwards that exchange buffers."""
    for loop in replicas:
        yield from loop.backwards
        yield from (update.node for update in loops.stepped(loop))
    if has_buffers(facts, program):
        for use in facts.calls:
            if origins(facts.values(use.node.func), Role.MODEL) & program.model_origins:
                yield use.node


def has_buffers(facts: Facts, program: Program) -> bool:
    """Whether a model that is trained may have buffers, such as the statistics of a BatchNorm."""
    values = [v for o in program.model_origins for v in facts.values(o) if v.role is Role.MODEL]
    if any(value.unit is None and not value.name.startswith("torch.nn.") for value in values):
        return True
    modules = {value.unit.module for value in values if isinstance(value.unit, Class)} | {program.module}
    return any(word in module.file.content for module in modules for word in _BUFFERED)


#: What a file says of models that have buffers; `models.` gives those of libraries.
_BUFFERED = (b"BatchNorm", b"register_buffer", b"torchvision.models", b"InstanceNorm")


def learning_rates(facts: Facts, program: Program) -> Iterator[ast.Assign | ast.AugAssign]:
    """`group["lr"] = lr` in the modules of the training loops."""
    for module in {loop.unit.module for loop in program.training}:
        for node in facts.tree(module.tree).nodes:
            if isinstance(node, (ast.Assign, ast.AugAssign)) and sets_rate(node):
                yield node


def by_chance(node: ast.AST, missing: list[str], what: str | None = None, more: int = 0) -> Refusal:
    """Why a program is left that decides by what each process draws for itself; `what`: what it decides.

    `more`: how many decisions are such for the same reason, and are not told of.
    """
    decides, text = decided(node)
    told, way = told_of(missing)
    also = f", as may {more} more decisions" if more else ""
    why = f"{what or decides} by {text}, which may differ between processes ({told}){also}: they would part ways"
    return Refusal(node, "MIG122", why, way)


def told_of(missing: list[str]) -> tuple[str, str]:
    """Why processes have other random numbers, and the way out."""
    if NUMBER in missing:
        return "each goes by its number", "decide by what all have summed up, or by a number of steps"
    own, plain = [each for each in missing if each in _OWN], [each for each in missing if each not in _OWN]
    named = " and ".join([", ".join(plain[:-1]), plain[-1]] if len(plain) > 1 else plain)
    told = ", ".join([f"{named} not seeded"] * bool(plain) + own)
    return told, ", and ".join([_way_out(plain)] * bool(plain) + [_OWN[each] for each in own])


#: What no seed of a library reaches, and what to do instead.
_OWN = {
    OWN_SEED: "seed with a number that is the same in every run",
    BESIDE: "draw in the program itself, or decide by a number of steps",
}
#: How each source of chance is seeded.
_SEEDED = {
    "random": "random.seed(0)",
    "numpy": "np.random.seed(0)",
    "torch": "torch.manual_seed(0)",
    ENVIRONMENT: "env.reset(seed=0) (env.seed(0) in older versions; env.action_space.seed(0) where it chooses actions)",
    GENERATOR: "the generator with a seed: np.random.default_rng(0)",
}


def _way_out(missing: list[str]) -> str:
    return f"before anything is drawn, call {', '.join(_SEEDED[name] for name in missing)}"
