"""One seed for all processes of a program without a loader, whose own randomness is another in each run.

Nothing deals its data out. Where processes would part ways, or keep something that each drew for itself, all of them
take the seed of the first: each then does what one process would. On one process nothing is seeded, as in the original.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from migrate.analysis.known import same as known
from migrate.programs.chance.draws import Draws
from migrate.programs.chance.environments import environments
from migrate.programs.chance.seeds import (
    BESIDE,
    ENVIRONMENT,
    GENERATOR,
    NUMBER,
    OWN_SEED,
    is_stream,
    seeds_itself,
)
from migrate.programs.processes.asked import sameness_of
from migrate.programs.program import Refusal
from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from migrate.analysis.facts import Facts
    from migrate.analysis.units import Module
    from migrate.programs.chance.environments import Environment
    from migrate.programs.chance.splits import Choice
    from migrate.programs.prepare.placement import Placement
    from migrate.programs.program import Program

#: What the code that seeds is written with; a program that has such names of its own seeds itself.
_NAMES = frozenset({"set_seed", "broadcast_object_list"})


@dataclass(frozen=True, slots=True)
class OneSeed:
    """The seed is set as soon as there is an accelerator, and given to every environment where that is made."""

    environments: tuple[Environment, ...]
    missing: frozenset[str] = frozenset()  # what is not seeded; all that it draws from others is alike already
    splits: tuple[ast.Call, ...] = ()  # all that must be alike, where loaders deal out what these choose
    made_up: tuple[ast.Call, ...] = ()  # the data themselves, which should be
    libraries: frozenset[str] = frozenset()  # that these draw from


def possible(facts: Facts, program: Program, missing: list[str]) -> OneSeed | None:
    """One seed for what a program draws and does not seed; None where that cannot be seeded from one place."""
    draws = Draws(facts, program)
    if program.start is None or {GENERATOR, NUMBER, OWN_SEED, BESIDE} & set(missing) or not draws.own(missing):
        return None
    if any(unit.name in _NAMES for unit in facts.functions if unit.module is program.start.module):
        return None
    if _seeds_itself(facts, program):
        return None
    played = environments(facts, program.start, draws.modules, draws.uses) if ENVIRONMENT in missing else ()
    return OneSeed(played, frozenset(missing)) if played is not None else None


def seed_of_splits(facts: Facts, program: Program, apart: Mapping[ast.Call, Choice]) -> OneSeed | None:
    """One seed for the data that a program chooses at random; None if each process gives itself a seed of its own.

    What it draws from a stream beside, that the system seeds, is another thing if the choice does not go by that.
    """
    by_stream = any(choice.library == GENERATOR for choice in apart.values())
    if program.start is None or _seeds_itself(facts, program, streams=by_stream):
        return None
    splits = tuple(call for call, choice in apart.items() if not choice.is_made_up)
    made_up = tuple(call for call in apart if call not in splits)
    return OneSeed((), splits=splits, made_up=made_up, libraries=frozenset(c.library for c in apart.values()))


def seeding_along(facts: Facts, programs: Sequence[Program], *, among_others: bool) -> list[Program]:
    """The programs that begin where another one takes a seed for its data: that does nothing to these.

    `among_others`: a script that is not seen here takes one.
    """
    starts = {p.start for p in programs if p.one_seed is not None and not p.one_seed.environments}
    others = [p for p in programs if p.one_seed is None and p.start is not None and (among_others or p.start in starts)]
    return [p for p in others if not _seeds_itself(facts, p)]


def _seeds_itself(facts: Facts, program: Program, *, streams: bool = True) -> bool:
    """Whether each process gives itself a seed of its own; of `streams`, made with one, or not at all."""
    sameness = sameness_of(facts, program, trusting=True)
    seeding = (use.node for use in Draws(facts, program).uses if seeds_itself(facts, sameness, use.node))
    return any(streams or not is_stream(facts, call) for call in seeding)


def is_taken(module: Module) -> bool:
    """Whether a file has names of its own that the seed would be set by; they may come by `from utils import *`."""
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in _NAMES:
            return True
        if isinstance(node, ast.alias) and (node.asname or node.name) in _NAMES:
            return True
        if isinstance(node, ast.Name) and node.id in _NAMES:
            return True
    return False


def drawn_before(facts: Facts, program: Program, placement: Placement) -> Iterator[Refusal]:
    """What is drawn before there is an accelerator: that is another on each process, whatever is seeded afterwards."""
    node = _first_drawn(facts, program, placement)
    if node is not None:
        yield Refusal(
            node,
            "MIG123",
            f"{ast.unparse(node)} draws something here, before there is an accelerator to agree on a seed with",
            "seed the program at its beginning, or draw after the device is chosen",
        )


def _first_drawn(facts: Facts, program: Program, placement: Placement) -> ast.Call | None:
    if program.one_seed is None:
        return None
    seed = program.one_seed
    if not seed.splits and not seed.made_up:
        return Draws(facts, program, frozenset(known.DRAWN) - seed.missing).before(placement.accelerator)
    return next((call for call, _ in _before(facts, Draws(facts, program), placement, seed.splits)), None)


def made_up_before(facts: Facts, program: Program, placement: Placement) -> set[ast.Call]:
    """The calls that make data up before there is an accelerator: a seed that is set then comes too late for them."""
    made_up = program.one_seed.made_up if program.one_seed is not None else ()
    return {call for _, call in _before(facts, Draws(facts, program), placement, made_up)}


def seeded_before(facts: Facts, program: Program, placement: Placement) -> dict[str, str]:
    """The libraries that a program has seeded, or may have, before there is an accelerator, as its file names them.

    Their state is that of one process on the main process, and may be another one elsewhere.
    """
    module, found = facts.module(placement.accelerator.statement), {}
    for call in Draws(facts, program).calls_before(placement.accelerator):
        for library in ("numpy", "random"):
            is_here = isinstance(call.func, ast.Attribute) and facts.module(call) is module
            if is_here and facts.called(call) & known.SEEDS[library]:
                found[library] = ast.unparse(call.func.value)  # type: ignore[attr-defined]
    return found


def _before(
    facts: Facts, draws: Draws, placement: Placement, wanted: tuple[ast.Call, ...]
) -> Iterator[tuple[ast.Call, ast.Call]]:
    """What is called before there is an accelerator, with each of the wanted calls that it makes, or is."""
    for call in draws.calls_before(placement.accelerator) if wanted else ():
        units = reached(facts, facts.targets(call))
        yield from ((call, each) for each in wanted if each is call or facts.unit(each) in units)
