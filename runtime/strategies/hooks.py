"""How DistributedDataParallel sends gradients: PyTorch's communication hooks by their names in Accelerate."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from torch.nn.parallel import DistributedDataParallel

from runtime.errors import ConfigurationError
from runtime.handlers import DistributedDataParallelKwargs

_PACKAGE = "torch.distributed.algorithms.ddp_comm_hooks"
HOOKS = {
    "fp16": ("default_hooks", "fp16_compress_hook"),
    "bf16": ("default_hooks", "bf16_compress_hook"),
    "power_sgd": ("powerSGD_hook", "powerSGD_hook"),
    "batched_power_sgd": ("powerSGD_hook", "batched_powerSGD_hook"),
}
WRAPPERS = {"fp16": "fp16_compress_wrapper", "bf16": "bf16_compress_wrapper"}


def register_hook(model: DistributedDataParallel, options: DistributedDataParallelKwargs) -> None:
    """Let the model send its gradients as the options say; "no" leaves them as they are.

    Raises:
        ConfigurationError: a name that is not known, or gradients that are averaged after each backward.
    """
    hook, wrapper = _name(options.comm_hook, HOOKS), _name(options.comm_wrapper, WRAPPERS)
    if hook == wrapper == "no":
        return
    if options.find_unused_parameters:
        raise ConfigurationError(
            "comm_hook and find_unused_parameters=True exclude each other: gradients that are averaged when a backward "
            "is over do not go through hooks. Leave one of them out."
        )
    if hook == "no":
        raise ConfigurationError(f"comm_wrapper={wrapper!r} wraps a hook. Pass comm_hook, too.")
    module, function = HOOKS[hook]
    home = import_module(f"{_PACKAGE}.{module}")
    call = getattr(home, function)
    if wrapper != "no":
        call = getattr(import_module(f"{_PACKAGE}.default_hooks"), WRAPPERS[wrapper])(call)
    state = home.PowerSGDState(None, **(options.comm_state_option or {})) if "power" in hook else None
    model.register_comm_hook(state, call)


def _name(said: Any, known: dict[str, Any]) -> str:
    text = str(getattr(said, "value", said)).lower()
    if text != "no" and text not in known:
        raise ConfigurationError(f"the communication hook {text!r} is not known. Known: no, {', '.join(known)}.")
    return text
