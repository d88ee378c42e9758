"""Models that are compiled when they are prepared: in place, so that class, keys and identity stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from runtime.config import flag_or_none
from runtime.errors import ConfigurationError, refuse_other_kind
from runtime.plugins import TorchDynamoPlugin, field_or_variable

VARIABLES = {  # field → what `accelerate launch` sets
    "mode": "ACCELERATE_DYNAMO_MODE",
    "fullgraph": "ACCELERATE_DYNAMO_USE_FULLGRAPH",
    "dynamic": "ACCELERATE_DYNAMO_USE_DYNAMIC",
    "use_regional_compilation": "ACCELERATE_DYNAMO_USE_REGIONAL_COMPILATION",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """What `torch.compile` is told."""

    backend: str | Callable[..., Any]
    arguments: Mapping[str, Any]
    is_regional: bool

    def apply(self, model: nn.Module) -> None:
        """Compile the model in place, unless the script has compiled it.

        Raises:
            ConfigurationError: PyTorch has no such backend here.
        """
        if hasattr(model, "_orig_mod") or model._compiled_call_impl is not None:  # noqa: SLF001  no public names
            return
        if isinstance(self.backend, str):
            known = _backends()
            if self.backend not in known:
                raise ConfigurationError(
                    f"dynamo_backend={self.backend!r} is not here. PyTorch has: {', '.join(known)}."
                )
        for part in _regions(model) if self.is_regional else [model]:
            part.compile(backend=self.backend, **self.arguments)


def _backends() -> list[str]:
    import torch.compiler  # here, because it takes a second, and only models that are compiled need it

    return sorted({*torch.compiler.list_backends(), "eager", "aot_eager"})  # those for debugging are not listed


def compilation(
    plugin: TorchDynamoPlugin | None, backend: Any, environ: Mapping[str, str], own: str | None = None
) -> Compilation | None:
    """How models are compiled; None if nobody asks for it.

    Args:
        own: the backend that the device has in the place of "inductor".

    Raises:
        ConfigurationError: both the plugin and `backend` are given, or a variable is neither yes nor no.
    """
    if plugin is not None and backend is not None:
        raise ConfigurationError("dynamo_plugin and dynamo_backend are both given. Keep the plugin, with its backend.")
    refuse_other_kind("dynamo_plugin", plugin, TorchDynamoPlugin)
    given = plugin or TorchDynamoPlugin(backend=backend)
    chosen = given.backend if given.backend is not None else environ.get("ACCELERATE_DYNAMO_BACKEND") or "no"
    if not callable(chosen):
        chosen = str(getattr(chosen, "value", chosen)).lower()
        if chosen == "no":
            return None
        chosen = own if own is not None and chosen == "inductor" else chosen
    values = {name: field_or_variable(given, name, variable, environ) for name, variable in VARIABLES.items()}
    values |= {name: flag_or_none(values[name], VARIABLES[name]) for name in VARIABLES if name != "mode"}
    is_regional = bool(values.pop("use_regional_compilation"))
    arguments = {**values, "options": given.options, "disable": given.disable}
    return Compilation(
        backend=chosen,
        arguments={name: value for name, value in arguments.items() if value not in (None, "default")},
        is_regional=is_regional,
    )


def _regions(model: nn.Module) -> Iterator[nn.Module]:
    """Layers that are repeated in a list, and the layers beside them."""
    if not any(_is_repeated(layer) for layer in model.modules()):
        yield model
        return
    for child in model.children():
        if _is_repeated(child):
            yield from child.children()
        elif isinstance(child, (nn.ModuleList, nn.ModuleDict)):
            for item in child.children():
                yield from _regions(item)
        else:
            yield from _regions(child)


def _is_repeated(layer: nn.Module) -> bool:
    kinds = [type(child) for child in layer.children()]
    return isinstance(layer, nn.ModuleList) and len(kinds) > 1 and len(set(kinds)) == 1
