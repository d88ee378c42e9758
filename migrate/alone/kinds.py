"""What a program asks of a loader's sampler before it tells it the epoch, where the loader shuffles itself now.

    if isinstance(loader.sampler, DistributedSampler):   ->   loader.set_epoch(epoch)
        loader.sampler.set_epoch(epoch)

The sampler that is there afterwards is of another kind, so the question has to go, or nobody would tell it the epoch.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from migrate.analysis.known.distributed import SAMPLERS

if TYPE_CHECKING:
    from migrate.alone.samplers import Samplers
    from migrate.analysis.facts import Facts

_TELLS = "set_epoch"


def is_affirmed(facts: Facts, samplers: Samplers, test: ast.expr) -> bool:
    """Whether a test asks if the sampler of such a loader is what it was in every case."""
    if not isinstance(test, ast.Call) or len(test.args) != 2 or samplers.loader_at(test.args[0]) is None:
        return False
    names, wanted = facts.called(test), test.args[1]
    if "builtins.hasattr" in names:
        return isinstance(wanted, ast.Constant) and wanted.value == _TELLS
    kinds = wanted.elts if isinstance(wanted, ast.Tuple) else [wanted]
    return "builtins.isinstance" in names and any(facts.names(kind) & SAMPLERS for kind in kinds)
