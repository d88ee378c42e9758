"""What a program's own distribution said and its accelerator must know: arguments of the constructor."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from migrate.programs.argument import HANDLERS, Argument
from migrate.programs.values.conditions import needs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import Loops
    from migrate.programs.program import Program, Refusal


@dataclass(frozen=True, slots=True)
class Handed:
    """What is handed on, for the programs in some files."""

    ddp: tuple[tuple[str, str], ...] = ()  # arguments of DistributedDataParallel
    seed: str | None = None  # that the order of samples is drawn from, with the number of the epoch
    splits: bool = False  # the batch size is that of all processes together
    workers: bool = False  # the processes of a machine shared out a number of loader workers


class Ready(Protocol):
    """Files whose programs were made ready together, as one process runs them; or why that was not done."""

    @property
    def paths(self) -> frozenset[str]: ...
    @property
    def is_apart(self) -> bool: ...
    def handed_to(self, entrances: frozenset[str]) -> Handed | None: ...
    @property
    def said(self) -> tuple[str, ...]: ...
    @property
    def refusals(self) -> tuple[Refusal, ...]: ...


def of_distribution(facts: Facts, loops: Loops, program: Program) -> Iterator[Argument]:
    """`split_batches`, the order of the samples, and what DistributedDataParallel was made with."""
    found = program.handed
    if found is None:
        return
    if found.splits or found.seed is not None:
        loader: dict[str, str] = {"split_batches": "True"} if found.splits else {}
        if found.seed is not None:
            loader |= {"use_seedable_sampler": "True", "data_seed": found.seed}
        yield Argument("dataloader_config", *_call("DataLoaderConfiguration", loader))
    if found.ddp:
        yield Argument(HANDLERS, *_call("DistributedDataParallelKwargs", dict(found.ddp)))


def _call(name: str, given: dict[str, str]) -> tuple[str, frozenset[str], tuple[str, ...]]:
    arguments = ", ".join(f"{key}={value}" for key, value in given.items())
    read = {need for value in given.values() for need in needs(ast.parse(value, mode="eval").body)}
    return f"{name}({arguments})", frozenset(read), (name,)
