"""Gradients that do not come in one backward for each forward: N processes have those of one."""

import pytest
import torch
from ranks import run_ranks
from torch import nn

from runtime import Accelerator, DistributedDataParallelKwargs

SIZE, STEPS = 12, 3


def two_losses(accelerator, model, x):
    output = model(x)
    accelerator.backward(output.mean(), retain_graph=True)
    accelerator.backward((output**2).mean())


def both_forwards_first(accelerator, model, x):
    first, second = model(x), model(2 * x)
    accelerator.backward(first.mean())
    accelerator.backward((second**2).mean())


def penalty_alone(accelerator, model, x):
    accelerator.backward(model(x).mean())
    x = x.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    accelerator.backward(((gradient.norm(dim=1) - 1) ** 2).mean())


def parts_alone(accelerator, model, x):
    hidden = accelerator.unwrap_model(model)[0](x)
    accelerator.backward(hidden.mean())
    accelerator.backward((model(x) ** 2).mean())


def released_late(accelerator, model, x):
    accelerator.steps_seen = getattr(accelerator, "steps_seen", 0) + 1
    for parameter in accelerator.unwrap_model(model)[0].parameters():
        parameter.requires_grad_(accelerator.steps_seen != 2)
    accelerator.backward((model(x) ** 2).mean())


STEPPING = {f.__name__: f for f in (two_losses, both_forwards_first, penalty_alone, parts_alone, released_late)}


def train(name):
    accelerator = Accelerator(cpu=True, kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    data = torch.randn(STEPS, SIZE, 4)
    for x in data:
        optimizer.zero_grad()
        STEPPING[name](accelerator, model, x.chunk(accelerator.num_processes)[accelerator.process_index])
        optimizer.step()
    return [parameter.detach().tolist() for parameter in model.parameters()]


@pytest.mark.parametrize("name", STEPPING)
def test_many_processes_have_the_gradients_of_one(name):
    alone = train(name)
    for rank in run_ranks(train, 2, name):
        for mine, expected in zip(rank, alone, strict=True):
            assert torch.allclose(torch.tensor(mine), torch.tensor(expected), atol=1e-6)
