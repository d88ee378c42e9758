"""Tensors: what makes them, what folds the rows of a batch away."""

from migrate.analysis.known.table import Computes, Makes, Other, Passes, Row, each
from migrate.analysis.roles import Role

ROWS: tuple[Row, ...] = (
    Computes("torch.*"),
    Computes("torch.Tensor.*"),
    *each(
        Makes,
        ("torch",),
        "tensor zeros ones full empty rand randn randint randperm arange linspace eye normal from_numpy as_tensor "
        "bernoulli multinomial",
        role=Role.TENSOR,
    ),
    *each(Makes, ("torch",), "*Tensor cuda.*Tensor", role=Role.TENSOR),
    *each(Passes, ("torch.autograd", "torch.autograd.variable"), "Variable", argument=(0, "data")),
    # What torch has beside tensors.
    *each(
        Other,
        ("torch",),
        "Generator Size Stream Event manual_seed seed initial_seed get_rng_state random.* save "
        "set_grad_enabled no_grad inference_mode enable_grad is_grad_enabled "
        "set_num_threads get_num_threads set_num_interop_threads "
        "set_printoptions set_default_dtype get_default_dtype set_default_device set_default_tensor_type "
        "set_float32_matmul_precision use_deterministic_algorithms is_tensor is_floating_point finfo iinfo "
        "autograd.set_detect_anomaly autograd.detect_anomaly autograd.profiler.* autograd.no_grad "
        "autograd.enable_grad autograd.backward",
    ),
    *each(
        Other,
        ("torch",),
        "ao.* fx.* hub.* jit.* multiprocessing.* onnx.* package.* profiler.* quantization.* testing.* utils.* "
        "_dynamo.* _inductor.* export.*",
    ),
    Computes("torch.utils.checkpoint.*"),
    Computes("torch.utils.dlpack.from_dlpack"),
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
COMPARISONS = frozenset("eq ne equal gt ge lt le".split())
MOVES = frozenset("to cuda cpu xpu".split())
DEVICE_TEXT = frozenset("cpu cuda mps xpu gpu".split())
#: Libraries that take tensors only on the CPU.
HOST_PREFIXES = ("numpy.", "sklearn.", "scipy.", "pandas.", "matplotlib.", "seaborn.", "skimage.")
#: Turn the dimensions of a batch: whether the samples stay the first goes by the dimensions that are named.
TURNING = frozenset("t transpose permute swapaxes swapdims movedim moveaxis mT".split())
#: Cut a tensor into pieces along a dimension: the first, if none is named.
CUTTING = frozenset("unbind chunk split tensor_split".split())


def is_in_place(method: str) -> bool:
    """Whether a method changes the tensor where it stands, by its name: `add_`, `zero_`."""
    return method.endswith("_") and not method.startswith("_")
