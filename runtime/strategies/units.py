"""Which layers of a model are sharded, gathered and computed again as a whole.

A layer whose parameters are also held by a layer outside of it is no unit: what is tied must stay one tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from torch import nn

from runtime.errors import ConfigurationError
from runtime.sharding import Sharding, WrapBy

Policy = Callable[..., bool]  # PyTorch's (module, recurse, nonwrapped_numel)

WITHOUT_FORWARD = (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
WHOLE = (nn.MultiheadAttention,)  # reads the weights of its layers without calling them


def units(model: nn.Module, sharding: Sharding, ignored: Collection[nn.Module] = ()) -> list[nn.Module]:
    """The layers that are units of their own, inner ones first; without the model itself.

    Raises:
        ConfigurationError: no layer has the class asked for.
    """
    policy = _policy(model, sharding)
    if policy is None:
        return []
    left_out = {id(layer) for top in ignored for layer in top.modules()}
    holders = _holders(model)
    chosen, _ = _chosen(model, policy, left_out)
    return [unit for unit in chosen if unit is not model and _is_apart(unit, holders)]


def _policy(model: nn.Module, sharding: Sharding) -> Policy | None:
    wrap = sharding.wrap
    if wrap is WrapBy.CLASS:
        return _by_class(model, sharding.class_names or tuple(getattr(model, "_no_split_modules", None) or ()))
    if wrap is WrapBy.SIZE:
        least = sharding.min_parameters
        return _by_size(least) if least > 0 else None
    return None if isinstance(wrap, WrapBy) else wrap


def _by_class(model: nn.Module, names: tuple[str, ...]) -> Policy:
    if not names:
        raise ConfigurationError(
            "auto_wrap_policy='transformer_based_wrap' needs the names of classes. "
            "Pass transformer_cls_names_to_wrap=['Block']."
        )
    present = {type(layer).__name__ for layer in model.modules()}
    missing = [name for name in names if name not in present]
    if missing:
        raise ConfigurationError(
            f"transformer_cls_names_to_wrap names {', '.join(missing)}, and the model has no such layer. "
            f"Its classes: {', '.join(sorted(present))}."
        )

    def policy(module: nn.Module, recurse: bool, nonwrapped_numel: int) -> bool:
        return recurse or type(module).__name__ in names

    return policy


def _by_size(least: int) -> Policy:
    def policy(module: nn.Module, recurse: bool, nonwrapped_numel: int) -> bool:
        is_whole = isinstance(module, WHOLE) if recurse else isinstance(module, WITHOUT_FORWARD)
        return nonwrapped_numel >= least and not is_whole

    return policy


def _chosen(module: nn.Module, policy: Policy, seen: set[int]) -> tuple[list[nn.Module], int]:
    """The layers that the policy wants, inner ones first, and how many numbers are in them."""
    if id(module) in seen:
        return [], 0
    seen.add(id(module))
    total = sum(parameter.numel() for parameter in module.parameters())
    chosen: list[nn.Module] = []
    covered = 0
    if policy(module=module, recurse=True, nonwrapped_numel=total):
        for child in module.children():
            inside, numbers = _chosen(child, policy, seen)
            chosen += inside
            covered += numbers
    has_forward = not isinstance(module, WITHOUT_FORWARD)
    if has_forward and policy(module=module, recurse=False, nonwrapped_numel=total - covered):
        chosen.append(module)
        covered = total
    return chosen, covered


def _holders(model: nn.Module) -> dict[int, set[int]]:
    """For every parameter the layers that have it as their own."""
    found: dict[int, set[int]] = {}
    for layer in model.modules():
        for parameter in layer.parameters(recurse=False):
            found.setdefault(id(parameter), set()).add(id(layer))
    return found


def _is_apart(unit: nn.Module, holders: dict[int, set[int]]) -> bool:
    inside = {id(layer) for layer in unit.modules()}
    return all(holders[id(parameter)] <= inside for parameter in unit.parameters())
