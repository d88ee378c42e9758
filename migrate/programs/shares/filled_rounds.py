"""Sums of a training that are divided by all samples of the data set, of which N processes may count some twice.

All processes take as many batches. Where the data has too few of them for the last round, it is filled up with the
first samples of the epoch, and `hits / len(data)` counts these once more; what the loop counts itself, `seen +=
len(y)`, has them, too.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.roles import Role, roles
from migrate.analysis.syntax import walk
from migrate.programs.values.accumulators import by_callers, statements_after
from migrate.programs.values.divided import Joined
from migrate.programs.values.kept import divisors_of
from migrate.programs.values.lengths import sized
from migrate.programs.values.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from migrate.analysis.facts import Facts
    from migrate.programs.loops import LoopFact
    from migrate.programs.values.accumulators import Accumulator


def counting_twice(facts: Facts, loop: LoopFact, found: Collection[Accumulator]) -> Iterator[str]:
    """The names of the sums over samples that something divides by the length of a data set."""
    for each in found:
        if each.joined is not Joined.SUM or not each.grows:
            continue
        later = [node for statement in statements_after(facts, each.after) for node in walk(statement)]
        divisors = [*divisors_of(later, each.name), *by_callers(facts, loop, each.name)]
        if any(_counts_data(facts, divisor) for divisor in divisors):
            yield each.name


def _counts_data(facts: Facts, divisor: ast.expr) -> bool:
    """`len(data)`, `len(loader.dataset)`, also by a name, and more of it: `2 * len(data)`."""
    given = (each for node in walk(divisor).of(ast.expr) for each in facts.once(Sources).given(node).expressions)
    calls = (node for each in (divisor, *given) for node in walk(each) if isinstance(node, ast.Call))
    counted = (sized(facts, call) for call in calls)
    return any(each is not None and roles(facts.values(each)) == {Role.DATASET} for each in counted)
