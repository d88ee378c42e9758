"""A model that one program trains and another one trains again, in the same run: they are one program.

`LRFinder(model, optimizer)` tries rates out on the model that `train(model, adam)` then trains. Converted apart, each
would prepare the model, or one would go on with a model that the other has prepared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.reach.callees import reached

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from migrate.analysis.facts import Facts
    from migrate.programs.program import Program, Refusal


def joined(
    facts: Facts,
    found: Sequence[Program],
    together: Callable[[Program, Program], Program],
    refused: Callable[[Program, str], Refusal],
) -> list[Program]:
    """The programs, where those that train one model in one run are one; `together` makes one of two."""
    result: list[Program] = []
    for program in found:
        other = next((p for p in result if _is_same_run(facts, p, program)), None)
        if other is None:
            result.append(program)
            continue
        both = together(other, program)
        if both.home is not None:
            result[result.index(other)] = both
            continue
        result.append(program)
        for one, first in ((other, program), (program, other)):
            why = f"the training at line {first.training[0].node.lineno} trains the same model: prepare needs both"
            one.refusals.append(refused(one, why))
    return result


def _is_same_run(facts: Facts, one: Program, other: Program) -> bool:
    """Whether two programs train one model, and one of them runs inside of the other's home."""
    if one.home is None or other.home is None or one.module is not other.module:
        return False
    if not one.model_origins & other.model_origins:
        return False
    return other.home in reached(facts, [one.home]) or one.home in reached(facts, [other.home])
