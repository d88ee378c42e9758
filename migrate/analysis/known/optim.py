"""Optimizers. What they train is their first argument, unless a row says otherwise."""

from migrate.analysis.known.table import Makes, Other, Passes, Row, each
from migrate.analysis.roles import Role

_PARAMS = (0, "params")

_TORCH: tuple[Row, ...] = (
    Makes("torch.optim.*", Role.OPTIMIZER, over=_PARAMS),
    Other("torch.optim.swa_utils.*"),
    Makes("torch.distributed.optim.DistributedOptimizer", Role.OPTIMIZER, over=(1, "params_rref")),
    Other("torch.optim.swap_in_optimizer_params_and_state"),
)

_TRANSFORMERS: tuple[Row, ...] = (
    *each(
        Makes,
        ("transformers", "transformers.optimization", "pytorch_transformers", "pytorch_transformers.optimization"),
        "AdamW",
        role=Role.OPTIMIZER,
        over=_PARAMS,
    ),
    *each(Makes, ("transformers", "transformers.optimization"), "Adafactor", role=Role.OPTIMIZER, over=_PARAMS),
    *each(
        Makes,
        ("pytorch_pretrained_bert", "pytorch_pretrained_bert.optimization"),
        "BertAdam",
        role=Role.OPTIMIZER,
        over=_PARAMS,
    ),
    *each(
        Makes,
        ("pytorch_pretrained_bert", "pytorch_pretrained_bert.optimization_openai"),
        "OpenAIAdam",
        role=Role.OPTIMIZER,
        over=_PARAMS,
    ),
)

_TIMM: tuple[Row, ...] = (
    *each(
        Makes, ("timm.optim", "timm.optim.optim_factory"), "create_optimizer", role=Role.OPTIMIZER, over=(1, "model")
    ),
    *each(
        Makes,
        ("timm.optim", "timm.optim.optim_factory"),
        "create_optimizer_v2",
        role=Role.OPTIMIZER,
        over=(0, "model_or_params"),
    ),
    *each(
        Makes,
        ("timm.optim",),
        "AdaBelief Adafactor Adahessian AdamP AdamW Lamb Lars Lion MADGRAD Nadam NvNovoGrad RAdam RMSpropTF SGDP",
        role=Role.OPTIMIZER,
        over=_PARAMS,
    ),
    *each(
        Passes,
        ("timm.optim", "timm.optim.optim_factory"),
        "add_weight_decay param_groups_weight_decay param_groups_layer_decay",
        argument=(0, "model"),
        role=Role.PARAMETERS,
    ),
    *each(
        Passes, ("timm.optim",), "Lookahead lookahead.Lookahead", argument=(0, "base_optimizer"), derived=Role.OPTIMIZER
    ),
)

_OTHERS: tuple[Row, ...] = (
    Makes("apex.optimizers.*", Role.OPTIMIZER, over=_PARAMS),
    *each(Passes, ("apex.optimizers", "apex.fp16_utils"), "FP16_Optimizer", argument=(0, "init_optimizer")),
    Passes("apex.parallel.LARC", (0, "optimizer")),
    Makes("bitsandbytes.optim.*", Role.OPTIMIZER, over=_PARAMS),
    Other("bitsandbytes.optim.GlobalOptimManager"),
    Makes("torch_optimizer.*", Role.OPTIMIZER, over=_PARAMS),
    Other("torch_optimizer.get"),
    Passes("torch_optimizer.Lookahead", (0, "optimizer"), derived=Role.OPTIMIZER),
    *(
        Makes(name, Role.OPTIMIZER, over=_PARAMS)
        for name in (
            "adabelief_pytorch.AdaBelief adabound.AdaBound adabound.AdaBoundW adamp.AdamP adamp.SGDP "
            "dadaptation.DAdaptAdam dadaptation.DAdaptSGD dadaptation.DAdaptAdaGrad adan_pytorch.Adan "
            "came_pytorch.CAME deepspeed.ops.adam.DeepSpeedCPUAdam deepspeed.ops.adam.FusedAdam "
            "deepspeed.ops.lamb.FusedLamb lion_pytorch.Lion madgrad.MADGRAD prodigyopt.Prodigy "
            "pytorch_ranger.Ranger pytorch_ranger.RangerVA pytorch_ranger.RangerQH ranger.Ranger ranger.RangerQH "
            "ranger.RangerVA ranger_adabelief.RangerAdaBelief schedulefree.AdamWScheduleFree "
            "schedulefree.RAdamScheduleFree schedulefree.SGDScheduleFree"
        ).split()
    ),
)

ROWS = (*_TORCH, *_TRANSFORMERS, *_TIMM, *_OTHERS)
