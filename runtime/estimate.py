"""How much memory a model takes while it is trained: counted on the meta device, where nothing is allocated.

What the forward pass keeps for backward (activations) depends on the batch, and is not in it.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from runtime.errors import ConfigurationError

ADAMW_STATES = 2  # two moments for each trained parameter, in its dtype
DTYPES = (torch.float32, torch.bfloat16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """The numbers in a model: each tensor once, though several layers may share it."""

    parameters: int
    trained: int
    buffers: int
    largest_layer: str
    largest_layer_parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes of a training that keeps everything in one dtype."""

    dtype: torch.dtype
    model: int
    gradients: int
    optimizer: int
    largest_layer: int

    @property
    def training(self) -> int:
        """All of it, in bytes."""
        return self.model + self.gradients + self.optimizer


def build(name: str) -> nn.Module:
    """The model that `package.module:callable` gives, or transformers' model of that name, on the meta device.

    Raises:
        ConfigurationError: there is no such model, or it cannot be made without data.
    """
    make = _from_module(name) if ":" in name else _from_transformers(name)
    try:
        with torch.device("meta"):
            model = make()
    except Exception as error:
        raise ConfigurationError(
            f"{name} could not be made on the meta device: {type(error).__name__}: {error}. Name a function without "
            "arguments that makes the model and loads nothing into it."
        ) from error
    if not isinstance(model, nn.Module):
        raise ConfigurationError(f"{name} gave a {type(model).__name__}, and not a torch.nn.Module.")
    return model


def count(model: nn.Module) -> Count:
    """What is in a model."""
    layers = {name: sum(p.numel() for p in layer.parameters(recurse=False)) for name, layer in model.named_modules()}
    largest = max(layers, key=lambda name: layers[name])
    parameters = list(model.parameters())
    return Count(
        parameters=sum(p.numel() for p in parameters),
        trained=sum(p.numel() for p in parameters if p.requires_grad),
        buffers=sum(buffer.numel() for buffer in model.buffers()),
        largest_layer=largest,
        largest_layer_parameters=layers[largest],
    )


def memory(found: Count) -> Iterator[Memory]:
    """What a training with AdamW takes, for each dtype."""
    for dtype in DTYPES:
        size = dtype.itemsize
        yield Memory(
            dtype=dtype,
            model=(found.parameters + found.buffers) * size,
            gradients=found.trained * size,
            optimizer=ADAMW_STATES * found.trained * size,
            largest_layer=found.largest_layer_parameters * size,
        )


def _from_module(name: str) -> Callable[[], Any]:
    place, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as python -m does
    try:
        found: Any = importlib.import_module(place)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(f"{name}: {error}. Write package.module:function, seen from this folder.") from error
    if not callable(found):
        raise ConfigurationError(
            f"{name} is a {type(found).__name__}: name a class or a function that makes the model."
        )
    return found  # type: ignore[no-any-return]


def _from_transformers(name: str) -> Callable[[], Any]:
    try:
        from transformers import AutoConfig, AutoModel  # type: ignore[import-not-found]
    except ImportError as error:
        raise ConfigurationError(
            f"{name} is looked for in transformers, which is not installed. pip install transformers, or write "
            "package.module:function for a model of your own."
        ) from error
    try:
        config = AutoConfig.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"transformers does not find {name}: {error}") from error
    return lambda: AutoModel.from_config(config)
