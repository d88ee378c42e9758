"""Models, losses, optimizers, schedulers: torch, torchvision, timm, transformers."""

from migrate.analysis.known.table import Makes, Passes
from migrate.analysis.roles import Role

_PARAMS = (0, "params")

MAKES = (
    Makes("accelerate.Accelerator", Role.ACCELERATOR),
    Makes("runtime.Accelerator", Role.ACCELERATOR),
    Makes("lightning.Fabric", Role.ACCELERATOR),
    Makes("lightning.fabric.Fabric", Role.ACCELERATOR),
    Makes("lightning_fabric.Fabric", Role.ACCELERATOR),
    Makes("torch.nn.*", Role.MODEL),
    Makes("torch.nn.init.*", Role.UNKNOWN),
    Makes("torch.nn.functional.*", Role.UNKNOWN),
    Makes("torch.nn.utils.*", Role.UNKNOWN),
    Makes("torch.nn.parallel.*", Role.UNKNOWN),
    Makes("torch.nn.Parameter", Role.TENSOR),
    Makes("torch.nn.parameter.*", Role.TENSOR),
    Makes("torch.nn.ParameterList", Role.UNKNOWN),
    *(
        Makes(f"torch.nn.{name}", Role.CRITERION)
        for name in (
            "L1Loss MSELoss CrossEntropyLoss CTCLoss NLLLoss NLLLoss2d PoissonNLLLoss GaussianNLLLoss KLDivLoss "
            "BCELoss "
            "BCEWithLogitsLoss MarginRankingLoss HingeEmbeddingLoss MultiLabelMarginLoss HuberLoss SmoothL1Loss "
            "SoftMarginLoss MultiLabelSoftMarginLoss CosineEmbeddingLoss MultiMarginLoss TripletMarginLoss "
            "TripletMarginWithDistanceLoss"
        ).split()
    ),
    Makes("torch.jit.script", Role.MODEL),
    Makes("torchvision.models.*", Role.MODEL),
    Makes("torch.hub.load", Role.MODEL),
    Makes("timm.create_model", Role.MODEL),
    Makes("timm.models.create_model", Role.MODEL),
    Makes("segmentation_models_pytorch.*", Role.MODEL),
    Makes("torch.optim.*", Role.OPTIMIZER, over=_PARAMS),
    Makes("torch.optim.lr_scheduler.*", Role.SCHEDULER, over=(0, "optimizer")),
    Makes("torch.optim.swa_utils.*", Role.UNKNOWN),
    Makes("timm.optim.create_optimizer", Role.OPTIMIZER, over=(1, "model")),
    Makes("timm.optim.create_optimizer_v2", Role.OPTIMIZER, over=(0, "model_or_params")),
    Makes("transformers.AdamW", Role.OPTIMIZER, over=_PARAMS),
    Makes("transformers.Adafactor", Role.OPTIMIZER, over=_PARAMS),
    Makes("transformers.optimization.*", Role.OPTIMIZER, over=_PARAMS),
    Makes("transformers.get_scheduler", Role.SCHEDULER, over=(1, "optimizer")),
    *(
        Makes(f"transformers.{module}get_{name}", Role.SCHEDULER, over=(0, "optimizer"))
        for module in ("", "optimization.")
        for name in (
            "linear_schedule_with_warmup",
            "cosine_schedule_with_warmup",
            "cosine_with_hard_restarts_schedule_with_warmup",
            "constant_schedule_with_warmup",
            "constant_schedule",
            "polynomial_decay_schedule_with_warmup",
            "inverse_sqrt_schedule",
        )
    ),
    Makes("transformers.optimization.get_scheduler", Role.SCHEDULER, over=(1, "optimizer")),
    Makes("transformers.AutoModel*", Role.MODEL),
    Makes("transformers.AutoTokenizer*", Role.UNKNOWN),
    Makes("transformers.AutoConfig*", Role.UNKNOWN),
    Makes("torch.cuda.amp.GradScaler", Role.SCALER),
    Makes("torch.amp.GradScaler", Role.SCALER),
    Makes("torch.load", Role.CHECKPOINT),
    Makes("argparse.ArgumentParser", Role.UNKNOWN),
)

PASSES = (
    Passes("torch.nn.DataParallel", wrapper=True),
    Passes("torch.nn.parallel.DataParallel", wrapper=True),
    Passes("torch.nn.parallel.data_parallel.DataParallel", wrapper=True),
    Passes("torch.nn.parallel.DistributedDataParallel", wrapper=True),
    Passes("torch.nn.parallel.distributed.DistributedDataParallel", wrapper=True),
    Passes("torch.nn.SyncBatchNorm.convert_sync_batchnorm"),
    Passes("torch.compile"),
)

#: Replaced by what `prepare` does.
DATA_PARALLEL = frozenset(
    {"torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.data_parallel.DataParallel"}
)
DISTRIBUTED_DATA_PARALLEL = frozenset(
    {"torch.nn.parallel.DistributedDataParallel", "torch.nn.parallel.distributed.DistributedDataParallel"}
)

#: Calls on a model that hand the model back.
FLUENT = frozenset(
    "to cuda cpu train eval float double half bfloat16 apply requires_grad_ share_memory type xpu".split()
)
#: Attributes of a model that mean the same through a DDP wrapper; all others are read from the model itself.
THROUGH_WRAPPER = frozenset("train eval zero_grad parameters forward training to cuda cpu requires_grad_".split())

CLIPPING = {
    "torch.nn.utils.clip_grad_norm_": "clip_grad_norm_",
    "torch.nn.utils.clip_grad_norm": "clip_grad_norm_",
    "torch.nn.utils.clip_grad.clip_grad_norm_": "clip_grad_norm_",
    "torch.nn.utils.clip_grad_value_": "clip_grad_value_",
    "torch.nn.utils.clip_grad.clip_grad_value_": "clip_grad_value_",
}
