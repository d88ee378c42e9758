"""What the classes about GPUs ask PyTorch's module for, with a stand-in for that module."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from runtime.devices.cuda import Cuda
from runtime.devices.xpu import Xpu
from runtime.errors import WorldError


@pytest.fixture(params=[Cuda, Xpu])
def gpu(request, monkeypatch):
    """The class, on a machine with two GPUs; its stand-in notes what is set."""
    told = []
    module = SimpleNamespace(
        told=told,
        device_count=lambda: 2,
        current_device=lambda: 1,
        set_device=told.append,
        get_rng_state_all=lambda: ["first", "second"],
        set_rng_state_all=lambda states: told.append(list(states)),
        set_rng_state=told.append,
    )
    monkeypatch.setattr(request.param, "module", module)
    return request.param()


def test_each_process_has_the_gpu_of_its_local_rank(gpu):
    name = gpu.kind.name
    assert gpu.own(0, 1) == torch.device(name)  # as the plain program
    assert gpu.own(1, 2) == torch.device(name, 1) == gpu.current()
    assert gpu.module.told == [torch.device(name, 1)]
    assert gpu.ddp_arguments(gpu.current()) == {"device_ids": [1], "output_device": 1}
    with pytest.raises(WorldError, match="local rank 2 has no GPU: this machine shows 2"):
        gpu.own(2, 3)


def test_nccl_connects_the_processes_when_they_join():
    own = torch.device("cuda", 1)
    assert (
        Cuda().group_arguments(own, "nccl") == Cuda().group_arguments(own, "cpu:gloo,cuda:nccl") == {"device_id": own}
    )
    assert Cuda().group_arguments(own, "gloo") == Xpu().group_arguments(own, "xccl") == {}


def test_random_states_go_to_as_many_gpus_as_there_are(gpu):
    key = f"torch_{gpu.kind.name}_manual_seed"
    assert gpu.random_states() == {key: ["first", "second"]}
    gpu.set_random_states({key: ["a", "b"]})
    gpu.set_random_states({key: ["a", "b", "c"]})  # saved where there were three: that of this process's own
    gpu.set_random_states({key: ["a"]})
    gpu.set_random_states({})
    assert gpu.module.told == [["a", "b"], "b", "a"]
