"""What training code calls on and around a model, by the names that rules replace."""

#: Calls on a model that hand the model back.
FLUENT = frozenset(
    "to cuda cpu train eval float double half bfloat16 apply requires_grad_ share_memory type xpu".split()
)
#: Those of them that never give another object, whatever they are told.
GIVES_ITSELF = frozenset("train eval apply requires_grad_".split())
#: A dictionary of layers.
LAYERS_BY_NAME = "torch.nn.ModuleDict"
#: Calls on a model that give its parameters, or its layers.
PARTS = frozenset("parameters named_parameters modules named_modules children named_children".split())
#: Attributes of a model that mean the same through a DDP wrapper; all others are read from the model itself.
THROUGH_WRAPPER = frozenset(
    """train eval zero_grad parameters forward training to cuda cpu requires_grad_ no_sync
    require_backward_grad_sync""".split()
)

#: Functions that change the layers which they are handed: how their names begin.
CHANGES_LAYERS = (
    *(f"torch.nn.utils.{name}" for name in ("prune.", "parametrize.", "parametrizations.", "remove_")),
    *(f"torch.nn.utils.{name}" for name in ("spectral_norm", "weight_norm", "vector_to_parameters")),
    *("torch.quantization.", "torch.ao.quantization.", "torch.ao.pruning.", "torch_pruning."),
)

CLIPPING = {
    "torch.nn.utils.clip_grad_norm_": "clip_grad_norm_",
    "torch.nn.utils.clip_grad_norm": "clip_grad_norm_",
    "torch.nn.utils.clip_grad.clip_grad_norm_": "clip_grad_norm_",
    "torch.nn.utils.clip_grad_value_": "clip_grad_value_",
    "torch.nn.utils.clip_grad.clip_grad_value_": "clip_grad_value_",
}

AUTOGRAD_BACKWARD = frozenset({"torch.autograd.backward", "torch.distributed.autograd.backward"})
NO_GRAD = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad"}
)
#: These are told whether gradients are on.
SETS_GRADIENTS = frozenset({"torch.set_grad_enabled", "torch.autograd.set_grad_enabled"})
WITH_GRADIENTS = frozenset({"torch.enable_grad", "torch.autograd.enable_grad", "torch.autograd.grad_mode.enable_grad"})
#: Layers and functions whose result for a sample depends on the rest of the batch, or is drawn, in training mode.
UNSTEADY = ("BatchNorm", "Dropout", "dropout", "batch_norm", "InstanceNorm", "RReLU", "rrelu")
#: A file that imports one of these has to do with PyTorch: its `backward` may be that of a loss.
TORCH_PACKAGES = frozenset(
    {"torch", "torchvision", "torchtext", "torchaudio", "transformers", "timm", "fastai", "pytorch_lightning"}
)
#: Classes (by the end of their names) for which a framework, or autograd, runs the loop.
RUN_ELSEWHERE = ("LightningModule", "torch.autograd.Function")
