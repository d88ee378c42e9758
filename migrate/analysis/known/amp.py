"""Mixed precision, by its old and its new names: autocast, scalers, apex."""

from migrate.analysis.known.table import Gives, Makes, Passes, Row
from migrate.analysis.roles import Role

AUTOCAST = frozenset(
    """torch.autocast torch.amp.autocast torch.amp.autocast_mode.autocast torch.cuda.amp.autocast
    torch.cuda.amp.autocast_mode.autocast torch.cpu.amp.autocast""".split()
)
NO_CONTEXTS = frozenset({"contextlib.nullcontext", "contextlib.suppress"})  # what stands for autocast where it is off
CUDA_SCALERS = frozenset(
    f"torch.{name}"
    for name in "amp.GradScaler amp.grad_scaler.GradScaler cuda.amp.GradScaler cuda.amp.grad_scaler.GradScaler".split()
)
#: What has a scaler of PyTorch's inside; calling it is the whole step: backward, clipping, `optimizer.step()`.
STEPS_WITH_TORCH = frozenset({"timm.utils.NativeScaler", "timm.utils.cuda.NativeScaler"})
STEPS_WHEN_CALLED = STEPS_WITH_TORCH | {"timm.utils.ApexScaler", "timm.utils.cuda.ApexScaler"}

ROWS: tuple[Row, ...] = (
    *(Makes(name, Role.AUTOCAST) for name in sorted(AUTOCAST)),
    *(Makes(name, Role.SCALER) for name in sorted(CUDA_SCALERS)),
    *(Makes(name, Role.SCALER) for name in sorted(STEPS_WHEN_CALLED)),
    Makes("torch.distributed.fsdp.sharded_grad_scaler.ShardedGradScaler", Role.SCALER),
    Gives("apex.amp.initialize", ((0, "models"), (1, "optimizers")), is_short=True),
    Passes("apex.amp.scale_loss", (0, "loss")),  # as a context manager: the loss, scaled
)
