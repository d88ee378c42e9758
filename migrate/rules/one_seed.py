"""one-seed: without a loader all processes draw the same, also where the program is not seeded.

    accelerator = Accelerator()
    if accelerator.num_processes > 1:
        set_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])

Batches that a program draws itself, games that it plays and data that it makes up are not shared out: every process
does what one process would, so all of them take the seed of the first. An environment has a generator of its own, which
gets that seed where it is made:

    env = gym.make("CartPole-v1")
    if accelerator.num_processes > 1:
        env.reset(seed=torch.initial_seed() % 2**32)

Programs for older versions of gym, whose step gives four things, call env.seed(); the action space is seeded, too,
where it chooses actions. Where nothing but fresh batches is drawn and nothing is decided by them, each process may have
its own. A program that seeds itself is left as it is.
Beside loaders the same seed is set where data are made up, split or chosen at random (`x = torch.randn(1000, 2)`,
`random_split`, `np.random.shuffle(indices)`) and nothing seeds that: each process would train on other data, and keep
others for the evaluation. What is drawn anew for each sample may be each process's own. The seed is set, too, where
layers set their parameters by the batch of a first run (ActNorm): each process would set others. So it is for what a
training goes by that is drawn once, and that prepare gives nobody: a head or a target network that no optimizer trains
and no file gives its weights, `centers = torch.randn(10, 64)`, `self.frequencies = torch.randn(2, 8)` in a layer. And
where every process runs an evaluation in full over a loader that shuffles, or a data set that draws for each sample:
what the last batch holds, or leaves out, is another thing in each order, and a program that stops by its figure would
part ways.
What the program has seeded itself by then goes on where the main process is, as on one process:

    torch.manual_seed(broadcast_object_list([torch.initial_seed() % 2**32])[0])
    np.random.set_state(broadcast_object_list([np.random.get_state()])[0])

Where the accelerator is made more than once, by a method that trains several times, the seed is drawn: the one that
torch has would be the same each time, and so would be the models and the data of all these runs.

    set_seed(broadcast_object_list([torch.randint(2**32, ()).item()])[0])

Refused: what is chosen before there is an accelerator; of data that are made up before, a note says so.
Safe: on one process nothing is seeded, and every run is another, as it was.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.same import STREAMS
from migrate.analysis.roles import Role
from migrate.analysis.units import Function
from migrate.programs.chance.draws import Draws
from migrate.programs.chance.hub import is_seeded_by_system
from migrate.programs.processes.one_seed import is_taken, made_up_before, seeded_before
from migrate.programs.processes.replicas import splits_apart
from migrate.rules.layout import place
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from migrate.analysis.roles import Value
    from migrate.analysis.units import Module
    from migrate.programs.chance.environments import Environment
    from migrate.programs.conversion import Conversion
    from migrate.programs.processes.one_seed import OneSeed
    from migrate.rules.draft import Draft

SEED = "torch.initial_seed() % 2**32"
_DRAWN = "torch.randint(2**32, ()).item()"  # where several runs begin with it: each goes on with other numbers


@rule("MIG123")
def one_seed(conversion: Conversion, draft: Draft) -> None:
    """Seed the environments that are made once there is an accelerator."""
    seed = conversion.program.one_seed
    for call in _apart(conversion):
        what = f"each process has data of its own by {ast.unparse(call.func)}, which is not seeded in every run"
        draft.note(call, what, _way_out(conversion, call))
    for each in seed.environments if seed is not None else ():
        if not _is_early(conversion, each):
            after = _holder(conversion, each.made) or each.made
            accelerator = conversion.access.name(after)
            code = _guarded(conversion, draft, after, accelerator, _calls(each))
            draft.after(after, code)
            draft.add_import(after, "torch")


def _holder(conversion: Conversion, made: ast.stmt) -> ast.stmt | None:
    """What makes the object that holds the accelerator, where that stands below: `agent = Agent(env)`."""
    holder = conversion.access.around.get(conversion.facts.unit(made))
    if holder is None or holder.is_there(conversion.facts, made):
        return None
    return next((s for s in holder.block if (s.end_lineno or s.lineno) == holder.line), None)


def _apart(conversion: Conversion) -> Collection[ast.Call]:
    """What no seed is set for in time."""
    facts, program = conversion.facts, conversion.program
    if program.one_seed is None:
        return splits_apart(facts, conversion.loops, program)
    return made_up_before(facts, program, conversion.placement)


def _way_out(conversion: Conversion, call: ast.Call) -> str:
    if conversion.facts.called(call) & STREAMS:
        return f"give it a seed: {ast.unparse(call.func)}(0)"
    if is_seeded_by_system(conversion.facts, call):
        return f"give it a seed: {ast.unparse(call.func)}(seed=0, ...)"
    return "seed the program at its beginning, alike on all processes: set_seed(0)"


def seeding(conversion: Conversion, draft: Draft, accelerator: str) -> str:
    """What follows the accelerator: the seed, and that of the environments that are already made."""
    seed = conversion.program.one_seed
    if not conversion.program.along.seeds and (seed is None or _comes_too_late(conversion, seed)):
        return ""
    statement = conversion.placement.accelerator.statement
    home = conversion.home_of("set_seed")
    at = f"{home}." if is_taken(conversion.facts.module(statement)) else ""
    calls, names = _seeds(conversion, draft, at)
    environments = seed.environments if seed is not None else ()
    calls += [call for each in environments if _is_early(conversion, each) for call in _calls(each)]
    draft.add_import(statement, "torch")
    for name in (None,) if at else names:
        draft.add_import(statement, home, name)
    return "\n" + _guarded(conversion, draft, statement, accelerator, calls)


#: What gives the state of a library's stream, and what sets it.
_STATES = {"numpy": ("get_state", "set_state"), "random": ("getstate", "setstate")}


def _seeds(conversion: Conversion, draft: Draft, at: str) -> tuple[list[str], list[str]]:
    """The statements that make all processes draw alike, and the names of the API in them.

    What the program has seeded itself goes on from where the main process is, as one process does.
    """
    facts, program, placement = conversion.facts, conversion.program, conversion.placement
    module = facts.module(placement.accelerator.statement)
    given = _DRAWN if facts.singles.runs_again(placement.accelerator.statement) else SEED
    first = f"{at}broadcast_object_list([{given}])[0]"
    streams = seeded_before(facts, program, placement) if program.one_seed and program.training_loaders else {}
    own = {library: _named(module, library) for library in _STATES if library not in streams}
    drawn = program.one_seed.libraries if program.one_seed is not None else frozenset()
    if not streams or any(library in drawn and name is None for library, name in own.items()):
        return [f"{at}set_seed({first})"], ["broadcast_object_list", "set_seed"]
    calls = [f"torch.manual_seed({first})"]
    calls += [f"{name}.seed({SEED})" for name in own.values() if name is not None]
    for library, stream in streams.items():
        get, put = _STATES[library]
        calls.append(f"{stream}.{put}({at}broadcast_object_list([{stream}.{get}()])[0])")
    return calls, ["broadcast_object_list"]


def _named(module: Module, library: str) -> str | None:
    """What a file calls the stream of a library: `np.random`."""
    wanted, end = ("numpy", ".random") if library == "numpy" else (library, "")
    found = (name for name, values in module.names.items() if any(_is_library(value, wanted) for value in values))
    return next((f"{name}{end}" for name in found), None)


def _is_library(value: Value, wanted: str) -> bool:
    return value.role is Role.KNOWN and value.name == wanted


def _comes_too_late(conversion: Conversion, seed: OneSeed) -> bool:
    """Whether all that it would be set for is made up before."""
    early = made_up_before(conversion.facts, conversion.program, conversion.placement)
    return bool(seed.made_up) and not seed.splits and early == set(seed.made_up)


def _is_early(conversion: Conversion, environment: Environment) -> bool:
    """Whether an environment is made above the accelerator, and has its name there."""
    start, made = conversion.program.start, environment.made
    if conversion.facts.unit(made) is start:
        return not conversion.has_accelerator_at(made)
    root = environment.seeding[0].partition(".")[0]
    is_hidden = isinstance(start, Function) and any(b.target == root for b in conversion.facts.bindings_in(start))
    is_hidden = is_hidden or (isinstance(start, Function) and root in start.parameter_names)
    return not is_hidden and Draws(conversion.facts, conversion.program).is_made_above(made)


def _calls(environment: Environment) -> list[str]:
    return [call.format(seed=SEED) for call in environment.seeding]


def _guarded(conversion: Conversion, draft: Draft, statement: ast.stmt, accelerator: str, calls: Iterable[str]) -> str:
    """The calls, where there are several processes."""
    indent = place(conversion.facts.file(statement), statement).unit
    return "\n".join([f"if {accelerator}.num_processes > 1:", *(f"{indent}{call}" for call in calls)])
