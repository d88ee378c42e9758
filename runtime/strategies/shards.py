"""Distributed tensors: taken out of whole ones, gathered into whole ones, and clipped together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from runtime.collectives import broadcast_object, broadcast_tensors
from runtime.messages import announce
from runtime.strategies.base import is_distributed_tensor
from runtime.tree import children, map_leaves, rebuilt
from runtime.world import World


def own_part(value: Any, like: Any) -> Any:
    """This process's part of a whole tensor, as a distributed tensor laid out as `like`.

    Anything else than a plain tensor of the shape of a distributed `like` comes back as it is.
    """
    if not isinstance(value, Tensor) or is_distributed_tensor(value) or not is_distributed_tensor(like):
        return value
    if value.shape != like.shape:
        return value
    from torch.distributed.tensor import DTensor

    mesh, local = like.device_mesh, value
    for dimension, placement in enumerate(like.placements):
        if placement.is_shard():
            parts = local.chunk(mesh.size(dimension), placement.dim)
            rank = mesh.get_local_rank(dimension)
            local = parts[rank] if rank < len(parts) else local.narrow(placement.dim, 0, 0)
    local = local.detach().to(like.to_local().device, copy=True)  # a copy, so that the whole can go
    return DTensor.from_local(local, mesh, like.placements, run_check=False, shape=value.shape, stride=like.stride())


def gathered(world: World, state: dict[str, Any]) -> dict[str, Any]:
    """`state` with whole tensors on the CPU of the main process; an empty dictionary on the others.

    Raises:
        CollectiveError: not all processes have come to this.
    """
    announce(world, [], "get_state_dict")

    def whole(leaf: Any) -> Any:
        tensor = leaf.full_tensor() if is_distributed_tensor(leaf) else leaf
        if world.rank != 0:
            return None
        return tensor.detach().cpu() if isinstance(tensor, Tensor) else tensor

    result: dict[str, Any] = map_leaves(whole, dict(state))
    return result if world.rank == 0 else {}


class _Slot:
    """The place of a tensor that the main process sends."""

    def __init__(self, tensor: Tensor) -> None:
        self.shape = tensor.shape
        self.dtype = tensor.dtype


def dealt(world: World, state: dict[str, Any], like: Callable[[tuple[Any, ...]], Any]) -> dict[str, Any]:
    """The main process's `state` on every process, with only its own part of what is distributed.

    Args:
        like: for the path to a value (its keys) the distributed tensor whose layout the value takes; or something else.
    """
    values: list[Tensor] = []

    def without_tensors(leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        values.append(leaf)
        return _Slot(leaf)

    structure = map_leaves(without_tensors, dict(state)) if world.rank == 0 else None
    structure = broadcast_object(world, structure)
    rest = iter(values)

    def filled(node: Any, path: tuple[Any, ...]) -> Any:
        if isinstance(node, _Slot):
            # In host memory on all: what lies there travels in another form than what lies on a device.
            whole = next(rest).detach().cpu() if world.rank == 0 else torch.empty(node.shape, dtype=node.dtype)
            broadcast_tensors(world, [whole])
            return own_part(whole, like(path))
        inside = children(node)
        if not inside:
            return node
        return rebuilt(node, [filled(value, (*path, key)) for key, value in inside])

    result: dict[str, Any] = filled(structure, ())
    return result


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float) -> Tensor:
    """`torch.nn.utils.clip_grad_norm_` also for distributed tensors, whole ones among them, and several meshes."""
    own = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    kinds: dict[Any, list[Tensor]] = {}
    for parameter in own:
        gradient: Any = parameter.grad
        if gradient is not None:
            mesh = gradient.device_mesh if is_distributed_tensor(gradient) else None
            kinds.setdefault(mesh, []).append(parameter)
    if len(kinds) <= 1:
        return whole(nn.utils.clip_grad_norm_(own, max_norm, norm_type=norm_type))
    norms = [whole(_norm(kind, norm_type)) for kind in kinds.values()]
    device = norms[0].device
    total: Tensor = torch.linalg.vector_norm(torch.stack([norm.to(device) for norm in norms]), norm_type)
    factor = (max_norm / (total + 1e-6)).clamp(max=1.0)  # as in torch.nn.utils
    for parameter in own:
        gradient = parameter.grad
        if gradient is not None:
            local = gradient.to_local() if is_distributed_tensor(gradient) else gradient
            local.mul_(factor.to(local.device))
    return total


def _norm(parameters: list[Tensor], norm_type: float) -> Any:
    return nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None], norm_type)


def whole(tensor: Any) -> Tensor:
    """A distributed tensor's value, the same on all processes; other tensors as they are."""
    result: Tensor = tensor.full_tensor() if is_distributed_tensor(tensor) else tensor
    return result
