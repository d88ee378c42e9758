"""Every rule, in the order in which they write their edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from migrate.rules.accelerator import accelerator
from migrate.rules.accumulation import accumulation
from migrate.rules.agreement import agreement
from migrate.rules.attributes import model_attributes
from migrate.rules.autocast import autocast
from migrate.rules.backward import backward_call
from migrate.rules.batch_moves import batch_moves
from migrate.rules.clipping import gradient_clipping
from migrate.rules.data_parallel import data_parallel
from migrate.rules.device_choice import device_choice
from migrate.rules.grad_scaler import grad_scaler
from migrate.rules.guarded import guarded_collective
from migrate.rules.host import to_the_host
from migrate.rules.loading import loading
from migrate.rules.metric_sync import metric_sync
from migrate.rules.metrics import metrics
from migrate.rules.model_placement import model_placement
from migrate.rules.one_seed import one_seed
from migrate.rules.output import output
from migrate.rules.prepare import prepare
from migrate.rules.rank_guards import rank_guards
from migrate.rules.reasons import REASONS
from migrate.rules.saving import saving
from migrate.rules.schedules import schedulers
from migrate.rules.tensor_types import tensor_types
from migrate.rules.unconverted import unconverted
from migrate.rules.waiting import waiting
from migrate.rules.without_loader import loops_without_loader

if TYPE_CHECKING:
    from migrate.rules.rule import Rule

#: In the order in which they write. Those that ask for the accelerator come before `saving` and `output`, which prefer
#: the functions that have it; `device_choice` needs to know every function that got a parameter; `accelerator` hands it
#: out at last, when nobody asks any more.
RULES: tuple[Rule, ...] = (
    unconverted,
    guarded_collective,
    prepare,
    rank_guards,
    model_placement,
    batch_moves,
    tensor_types,
    to_the_host,
    backward_call,
    grad_scaler,
    autocast,
    accumulation,
    agreement,
    one_seed,
    gradient_clipping,
    data_parallel,
    metrics,
    metric_sync,
    loading,
    schedulers,
    model_attributes,
    saving,
    output,
    device_choice,
    accelerator,
    loops_without_loader,
    waiting,
)

__all__ = ["REASONS", "RULES"]
