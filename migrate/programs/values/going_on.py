"""Numbers and lists that go on growing in another training loop: their shares are joined behind the last of these.

    total = 0
    for batch in first: ...   # total += loss.item()
    for batch in second: ...  # total += loss.item()

Joined behind each of them, what the first has left would count once for each process.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from migrate.analysis.syntax import reads, writes
from migrate.programs.values.accumulators import statements_after

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.values.accumulators import Accumulator


def joined_last(facts: Facts, found: Collection[Accumulator], others: Collection[Accumulator]) -> Iterator[Accumulator]:
    """What a loop adds up, joined behind it only where nothing of `others`, of further loops, takes it up first."""
    for each in found:
        alike = [o for o in others if o.name == each.name and o.joined is each.joined and o.after is not each.after]
        yield replace(each, joined=None) if each.joined and _goes_on(facts, each, alike) else each


def _goes_on(facts: Facts, accumulator: Accumulator, others: Collection[Accumulator]) -> bool:
    """Whether another loop is the first to ask for it."""
    for statement in statements_after(facts, accumulator.after):
        if any(statement is other.after for other in others):
            return True
        if accumulator.name in reads(statement) | writes(statement):
            return False
    return False
