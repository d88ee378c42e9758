"""What a training loop adds up and collects, and can be joined without what stays one process's own.

    totals[name] += value.item() * len(y)      where a batch says which items there are, they stay each process's own
    samples += len(y)                          so this stays, too, where `totals[name] / samples` is read

Joined alone, the number of all samples would make each process's mean N times too small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.shares.own_places import own_places
from migrate.programs.training.phases import evaluating
from migrate.programs.values.accumulators import accumulators, statements_after
from migrate.programs.values.dictionaries import dictionaries
from migrate.programs.values.lists import lists
from migrate.programs.values.together import divided

if TYPE_CHECKING:
    from collections.abc import Iterable

    from migrate.analysis.facts import Facts
    from migrate.analysis.syntax import Loop
    from migrate.programs.loops import LoopFact
    from migrate.programs.values.accumulators import Accumulator


def joinable(facts: Facts, loop: LoopFact, taking: Loop) -> list[Accumulator]:
    """The names that a loop adds up and the lists that it fills, but for those that divide what is left.

    Of a loop through the parts of one batch, which a function is given by the loop that takes the batches, nothing.
    """
    if facts.unit(taking) is not loop.unit:
        return []
    found = _whole([*accumulators(facts, loop), *lists(facts, loop)], dictionaries(facts, loop))
    own = own_places(facts, loop, loop.node, evaluating(facts, loop)) - {each.name for each in found}
    left = divided(facts, statements_after(facts, loop.node), {each.name for each in found}, own) if own else set()
    return [each for each in found if each.name not in left]


def _whole(found: Iterable[Accumulator], dictionaries: Iterable[Accumulator]) -> list[Accumulator]:
    """With the dictionaries, and without what is an item of one."""
    others = tuple(dictionaries)
    return [*(each for each in found if not each.name.startswith(tuple(f"{o.name}[" for o in others))), *others]
