"""What becomes of an evaluation loop: it is shared out among the processes, or each runs it in full."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping

    from migrate.programs.loops import LoopFact


@dataclass(frozen=True, slots=True)
class Shared:
    """Gather these names right after this statement of the loop; a result that is used at once gets a name first.

    Lists of a batch that may hold no tensors are gathered each by itself.
    """

    loop: LoopFact
    after: ast.stmt
    names: tuple[str, ...]
    lists: tuple[str, ...] = ()
    also: tuple[ast.stmt, ...] = ()  # the same right after these, in other branches
    before: str = ""  # why they are gathered before this statement, the first of the loop, so that nothing is shared
    unnamed: ast.Call | None = None  # the model's call inside `after`; `names[0]` is its new name
    without_gradients: bool = False  # that are turned off around the loop, so that it is known for an evaluation
    counted: Mapping[ast.Name, str] = field(default_factory=dict)  # what is asked for its rows, with what else has them
    measured: tuple[ast.Assign, ...] = ()  # lengths that are taken below the loop
    asked: tuple[ast.Call, ...] = ()  # lengths that the accelerator is asked for, since the loop itself needs them
    whole: tuple[ast.expr, ...] = ()  # the loaders that the loop runs over, which are asked for whole batches
    late: tuple[ast.stmt, ...] = ()  # what counts the rows of a batch before the model is called: it does so below


@dataclass(frozen=True, slots=True)
class InFull:
    """Every process runs the whole loop, for this reason."""

    loop: LoopFact
    why: str
    is_raw: bool | None = False  # whether it goes over a loader that is not prepared there; None: at times
