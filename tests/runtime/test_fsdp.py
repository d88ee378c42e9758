"""Sharded models (FSDP2) on gloo: N processes compute what one does, and files hold what a plain model loads."""

from __future__ import annotations

import pytest
import torch
from ranks import run_ranks
from shards import Net, needs_shards

from runtime import (
    Accelerator,
    DistributedType,
    FullyShardedDataParallelPlugin,
)
from runtime.errors import ConfigurationError
from runtime.strategies.fsdp import _refuse_without_events

STEPS, SIZE = 4, 12


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=0.01)


def sgd(parameters):
    own = list(parameters)
    return torch.optim.SGD([{"params": own[:2], "lr": 0.02}, {"params": own[2:]}], lr=0.01, momentum=0.9)


BY_CLASS = {"auto_wrap_policy": "transformer_based_wrap", "transformer_cls_names_to_wrap": ["Block"]}
# options of the plugin, the optimizer, micro-steps, whether gradients are clipped, precision, who is prepared first
CASES = {
    "sgd": (BY_CLASS, sgd, 1, False, "no", "together"),
    "adamw": (BY_CLASS, adamw, 1, True, "no", "model first"),
    "accumulated": ({}, adamw, 2, True, "no", "optimizer first"),
    "by size": ({"auto_wrap_policy": "SIZE_BASED_WRAP", "min_num_params": 40}, sgd, 1, True, "no", "together"),
    "kept gathered": ({**BY_CLASS, "reshard_after_forward": False}, adamw, 1, False, "no", "together"),
    "offload": ({**BY_CLASS, "cpu_offload": True}, adamw, 1, True, "no", "together"),
    "computed again": ({**BY_CLASS, "activation_checkpointing": True}, adamw, 2, False, "no", "together"),
    "not all": ({**BY_CLASS, "ignored_modules": "first|blocks.1"}, adamw, 2, True, "no", "together"),
    "bf16": (BY_CLASS, adamw, 1, False, "bf16", "together"),
    "bf16, gathered in fp32": ({**BY_CLASS, "mixed_precision_policy": "fp32"}, adamw, 1, False, "bf16", "together"),
}


REPEATED = ("adamw", "accumulated", "bf16")


def warmed_up(net, optimizer):
    """A step before prepare, so that the optimizer has a state."""
    net(torch.ones(2, 5)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def train(name):
    """Losses, norms and the final state of one case; whole states on the main process alone."""
    options, make, micro_steps, clips, precision, order = CASES[name]
    plugin = FullyShardedDataParallelPlugin(**options)
    accelerator = Accelerator(
        cpu=True, fsdp_plugin=plugin, gradient_accumulation_steps=micro_steps, mixed_precision=precision
    )
    torch.manual_seed(0)
    net = Net()
    torch.nn.init.normal_(net.back.weight, std=0.1)
    optimizer = make(net.parameters())
    warmed_up(net, optimizer)
    learned = net.back.weight
    if order == "together":
        net, optimizer = accelerator.prepare(net, optimizer)
    elif order == "model first":
        net = accelerator.prepare(net)
        optimizer = accelerator.prepare(optimizer)
    else:
        optimizer = accelerator.prepare(optimizer)
        net = accelerator.prepare(net)
    assert (learned.numel() == 0) == accelerator._strategy.is_sharded(net)  # its memory is given back
    losses, norms = [], []
    for x in torch.randn(STEPS, SIZE, 5):
        own = x.chunk(accelerator.num_processes)[accelerator.process_index]
        with accelerator.accumulate(net):
            loss = (net(own) - 1).square().mean()
            accelerator.backward(loss)
            if clips and accelerator.sync_gradients:
                norms.append(float(accelerator.clip_grad_norm_(net.parameters(), 0.5)))
            optimizer.step()
            optimizer.zero_grad()
        losses.append(float(accelerator.reduce(loss.detach(), "mean")))
    strategy = accelerator._strategy
    state = accelerator.get_state_dict(net)
    return {
        "type": accelerator.distributed_type,
        "sharded": strategy.is_sharded(net),
        "losses": losses,
        "norms": norms,
        "state": {key: value.tolist() for key, value in state.items()},
        "tied": net.back.weight is net.tied.weight,
        "optimizer": strategy.optimizer_state(optimizer),
    }


def train_all():
    return {name: (train(name), train(name)["state"] if name in REPEATED else None) for name in CASES}


@pytest.fixture(scope="module")
def both():
    return run_ranks(train_all, 2)


def close(mine, expected, atol):
    return torch.allclose(torch.tensor(mine), torch.tensor(expected), atol=atol, rtol=1e-5)


@needs_shards
@pytest.mark.parametrize("name", CASES)
def test_two_processes_with_a_part_each_compute_what_one_does(both, name):
    alone = train(name)
    (main, again), (other, _) = both[0][name], both[1][name]
    assert alone["type"] is DistributedType.NO
    assert main["type"] is other["type"] is DistributedType.FSDP
    assert main["sharded"]
    assert main["tied"]
    atol = 0.05 if name == "bf16" else 2e-3 if "bf16" in name else 2e-6
    assert main["losses"] == other["losses"]
    assert close(main["losses"], alone["losses"], atol)
    assert close(main["norms"], alone["norms"], atol)
    assert list(main["state"]) == list(alone["state"])
    assert all(close(main["state"][key], value, atol) for key, value in alone["state"].items())
    assert other["state"] == {}
    assert other["optimizer"] == {}
    assert again in (None, main["state"]), "a second run is the same to the last bit"
    for number, state in alone["optimizer"]["state"].items():
        for key, value in state.items():
            mine = main["optimizer"]["state"][number][key]
            assert torch.is_tensor(mine) == torch.is_tensor(value)
            assert type(mine) is type(value)
            if name != "bf16":
                assert value is None or close(mine.tolist(), value.tolist(), atol)
    assert main["optimizer"]["param_groups"] == alone["optimizer"]["param_groups"]


def test_torch_that_cannot_shard_on_this_device_is_named(monkeypatch):
    monkeypatch.setattr(torch.cpu.Stream, "record_event", None, raising=False)
    _refuse_without_events(torch.device("cpu"))
    monkeypatch.delattr(torch.cpu.Stream, "record_event")  # as in torch 2.6
    with pytest.raises(ConfigurationError, match=r"cannot shard models on cpu: install torch 2\.7 or newer"):
        _refuse_without_events(torch.device("cpu"))
