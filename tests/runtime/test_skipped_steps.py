"""fp16 on several processes: gradients of one that are not finite keep all of them from stepping."""

from __future__ import annotations

import itertools

import pytest
import torch
from ranks import run_ranks
from shards import CAN_SHARD, needs_shards
from torch import nn

from runtime import Accelerator, FullyShardedDataParallelPlugin, GradScalerKwargs
from runtime.devices.cpu import Cpu

STEPS = 4
BROKEN = {1: float("inf"), 2: float("nan")}  # step → what the loss is multiplied with on the last process


class Scaled(nn.Sequential):
    """Layers, and a factor without dimensions: it stays whole where the layers are sharded."""

    def __init__(self, *layers):
        super().__init__(*layers)
        self.factor = nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return self.factor * super().forward(x)


def train(is_sharded):
    Cpu.scales = True  # as if this were a GPU; the process ends with the test
    accelerator = Accelerator(
        cpu=True,
        mixed_precision="fp16",
        kwargs_handlers=[GradScalerKwargs(init_scale=1024.0)],
        fsdp_plugin=FullyShardedDataParallelPlugin() if is_sharded else None,
    )
    torch.manual_seed(0)
    model = Scaled(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1))
    first = torch.optim.SGD([*model[0].parameters(), model.factor], lr=0.1)
    second = torch.optim.SGD(model[2].parameters(), lr=0.1)
    model, first, second = accelerator.prepare(model, first, second)
    history = []
    for step, x in enumerate(torch.randn(STEPS, 8, 3)):
        loss = model(x.chunk(2)[accelerator.process_index]).square().mean()
        if accelerator.is_last_process:
            loss = loss * BROKEN.get(step, 1.0)
        accelerator.backward(loss)
        norm = accelerator.clip_grad_norm_(model.parameters(), 10.0)
        for optimizer in (first, second):
            optimizer.step()
            optimizer.zero_grad()
        weights = accelerator.get_state_dict(model)
        if accelerator.is_main_process:
            history.append([weight.clone() for weight in weights.values()])
        history.append((accelerator.optimizer_step_was_skipped, accelerator.scaler.get_scale(), bool(norm.isfinite())))
    return history


def both_ways():
    return [train(is_sharded=is_sharded) for is_sharded in (False, True)[: 1 + CAN_SHARD]]


@pytest.fixture(scope="module")
def histories():
    return run_ranks(both_ways, 2)


@pytest.mark.parametrize("is_sharded", [False, pytest.param(True, marks=needs_shards)])
def test_all_processes_skip_the_same_steps_and_lower_the_scale_once(histories, is_sharded):
    main, other = (history[is_sharded] for history in histories)
    told = [entry for entry in main if isinstance(entry, tuple)]
    assert told == other
    assert told == [(False, 1024.0, True), (True, 512.0, False), (True, 256.0, False), (False, 256.0, True)]
    weights = [entry for entry in main if isinstance(entry, list)]
    changed = [
        any(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
        for before, after in itertools.pairwise(weights)
    ]
    assert changed == [False, False, True]


@needs_shards
def test_shards_step_as_replicas_do(histories):
    replicas, shards = ([e for e in way if isinstance(e, list)][-1] for way in histories[0])
    for mine, expected in zip(shards, replicas, strict=True):
        assert torch.allclose(mine, expected, atol=2e-3)  # shards are gathered in float16
