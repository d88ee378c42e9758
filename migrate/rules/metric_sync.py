"""metric-sync: metrics of torchmetrics do not add up over processes what every process has seen whole.

    accuracy = Accuracy(task="multiclass", num_classes=3)
                               ->   accuracy = Accuracy(task="multiclass", num_classes=3, sync_on_compute=False)

In an evaluation every process is given every row (MIG114), and `compute()` would join them once more: each sample would
count once for each process. A metric that only a training loop feeds goes on joining the processes' own batches.
Refused: one object that training and evaluation feed. Safe: on one process there is nothing to join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.programs.evaluation.metric_objects import OPTION, metric_objects
from migrate.rules.rule import rule

if TYPE_CHECKING:
    from migrate.programs.conversion import Conversion
    from migrate.rules.draft import Draft


@rule("MIG124")
def metric_sync(conversion: Conversion, draft: Draft) -> None:
    """Say in the constructor of a metric that evaluations feed that it joins nothing."""
    for metric in metric_objects(conversion.facts, conversion.loops, conversion.program, conversion.units):
        if metric.in_evaluation and metric.syncs_by_itself:
            draft.add_keyword(metric.made, OPTION, "False")
