"""Learning rate schedulers, and which argument is the optimizer that they drive."""

from migrate.analysis.known.table import Gives, Makes, Other, Row, each
from migrate.analysis.roles import Role

_OPTIMIZER = (0, "optimizer")
_SECOND = (1, "optimizer")

_TORCH: tuple[Row, ...] = (
    Makes("torch.optim.lr_scheduler.*", Role.SCHEDULER, over=_OPTIMIZER),
    Makes("torch.optim.lr_scheduler.ChainedScheduler", Role.SCHEDULER, over=_SECOND),
    Makes("torch.optim.swa_utils.SWALR", Role.SCHEDULER, over=_OPTIMIZER),
)

_TRANSFORMERS: tuple[Row, ...] = (
    *each(
        Makes,
        ("transformers", "transformers.optimization", "diffusers.optimization"),
        "get_scheduler",
        role=Role.SCHEDULER,
        over=_SECOND,
    ),
    *each(
        Makes,
        ("transformers", "transformers.optimization", "diffusers.optimization"),
        "get_linear_schedule_with_warmup get_cosine_schedule_with_warmup get_constant_schedule_with_warmup "
        "get_constant_schedule get_cosine_with_hard_restarts_schedule_with_warmup "
        "get_polynomial_decay_schedule_with_warmup",
        role=Role.SCHEDULER,
        over=_OPTIMIZER,
    ),
    *each(
        Makes,
        ("transformers", "transformers.optimization"),
        "get_inverse_sqrt_schedule get_wsd_schedule get_reduce_on_plateau_schedule "
        "get_cosine_with_min_lr_schedule_with_warmup",
        role=Role.SCHEDULER,
        over=_OPTIMIZER,
    ),
    *each(
        Makes,
        ("pytorch_transformers", "pytorch_transformers.optimization", "transformers.optimization", "transformers"),
        "WarmupLinearSchedule WarmupCosineSchedule WarmupCosineWithHardRestartsSchedule WarmupConstantSchedule",
        role=Role.SCHEDULER,
        over=_OPTIMIZER,
    ),
)

_TIMM: tuple[Row, ...] = (
    *each(
        Gives,
        ("timm.scheduler", "timm.scheduler.scheduler_factory"),
        "create_scheduler",
        elements=(Role.SCHEDULER, Role.NUMBER),
        over=_SECOND,
    ),
    *each(
        Gives,
        ("timm.scheduler", "timm.scheduler.scheduler_factory"),
        "create_scheduler_v2",
        elements=(Role.SCHEDULER, Role.NUMBER),
        over=_OPTIMIZER,
    ),
    Makes("timm.scheduler.*Scheduler", Role.SCHEDULER, over=_OPTIMIZER),
)

_OTHERS: tuple[Row, ...] = (
    *each(
        Makes,
        ("pytorch_warmup",),
        "LinearWarmup ExponentialWarmup UntunedLinearWarmup UntunedExponentialWarmup RAdamWarmup",
        role=Role.SCHEDULER,
        over=_OPTIMIZER,
    ),
    *each(
        Makes,
        ("warmup_scheduler", "warmup_scheduler.scheduler"),
        "GradualWarmupScheduler",
        role=Role.SCHEDULER,
        over=_OPTIMIZER,
    ),
    Makes("cosine_annealing_warmup.CosineAnnealingWarmupRestarts", Role.SCHEDULER, over=_OPTIMIZER),
    Makes("pl_bolts.optimizers.lr_scheduler.LinearWarmupCosineAnnealingLR", Role.SCHEDULER, over=_OPTIMIZER),
    # Schedules of the noise of a diffusion, not of a learning rate.
    Other("diffusers.*Scheduler"),
)

ROWS = (*_TORCH, *_TRANSFORMERS, *_TIMM, *_OTHERS)
