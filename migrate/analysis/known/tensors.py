"""Tensors: what makes them, what folds the rows of a batch away, what moves them."""

from migrate.analysis.known.table import Makes, Passes
from migrate.analysis.roles import Role

MAKES = (
    *(
        Makes(f"torch.{name}", Role.TENSOR)
        for name in (
            "tensor zeros ones full empty rand randn randint randperm arange linspace eye normal from_numpy as_tensor "
            "Tensor FloatTensor LongTensor IntTensor ByteTensor DoubleTensor BoolTensor bernoulli multinomial"
        ).split()
    ),
    Makes("torch.cuda.FloatTensor", Role.TENSOR),
    Makes("torch.cuda.LongTensor", Role.TENSOR),
    Makes("torch.device", Role.DEVICE),
    Makes("torch.accelerator.current_accelerator", Role.DEVICE),
    Makes("torch.cuda.current_device", Role.DEVICE),
    Makes("torch.cuda.is_available", Role.AVAILABLE),
    Makes("torch.cuda.device_count", Role.NUMBER),
    Makes("torch.accelerator.is_available", Role.AVAILABLE),
    Makes("torch.accelerator.device_count", Role.NUMBER),
    Makes("torch.backends.mps.is_available", Role.AVAILABLE),
    Makes("torch.backends.mps.is_built", Role.AVAILABLE),
    Makes("torch.mps.is_available", Role.AVAILABLE),
    Makes("torch.xpu.is_available", Role.AVAILABLE),
    Makes("torch.manual_seed", Role.UNKNOWN),
)

PASSES = (
    Passes("torch.autograd.Variable"),
    Passes("torch.autograd.variable.Variable"),
)

VARIABLE = frozenset({"torch.autograd.Variable", "torch.autograd.variable.Variable"})

#: Methods and functions that fold the rows of a batch into one number or tensor without rows.
#: Those of the second set do so only when no dimension is given.
FOLDING = frozenset(
    """item size shape numel dim ndim tolist numpy __len__ backward dist nelement data_ptr norm
    nll_loss cross_entropy mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
    binary_cross_entropy_with_logits kl_div ctc_loss cosine_embedding_loss triplet_margin_loss margin_ranking_loss
    hinge_embedding_loss poisson_nll_loss gaussian_nll_loss soft_margin_loss multi_margin_loss""".split()
)
FOLDING_WITHOUT_DIM = frozenset("sum mean max min prod std var median all any argmax argmin".split())
#: Leave the device.
TO_HOST = frozenset("cpu numpy tolist item".split())
MOVES = frozenset("to cuda cpu xpu".split())
DEVICE_TEXT = frozenset("cpu cuda mps xpu gpu".split())
#: Libraries that take tensors only on the CPU.
HOST_PREFIXES = ("numpy.", "sklearn.", "scipy.", "pandas.", "matplotlib.")
#: Turn the dimensions of a batch, so that the samples are not the first any more.
TURNING = frozenset("t transpose permute swapaxes swapdims movedim moveaxis T mT unbind chunk split".split())
