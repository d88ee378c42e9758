"""Means over the processes that each step takes to show them: they stay where steps of a training alone come."""

import pytest

from migrate.report.model import Kind

PROGRAM = """
import torch
import torch.distributed as dist
from torch import nn, optim
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def mean(x{more}):
    if dist.get_world_size() < 2{and_more}:
        return x
    x = x.clone()
    dist.all_reduce(x)
    x /= dist.get_world_size()
    return x


dist.init_process_group("gloo")
data = TensorDataset(torch.zeros(8, 2), torch.zeros(8, 1))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=4, sampler=sampler)
test_loader = DataLoader(data, batch_size=4)
model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1))
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {step}
    model.eval()
    with torch.no_grad():
        for x, y in test_loader:
            loss = nn.functional.mse_loss(model(x), y)
            {test}
            print(loss.item())
    model.train()
"""
STEP = "shown = mean(loss.detach())"
KEPT = """
def mean(x):
    if accelerator.num_processes == 1:
        return x
    x = x.clone()
    x.copy_(accelerator.reduce(x, reduction="sum"))
    x /= accelerator.num_processes
    return x
"""


def program(step=STEP, test="pass", more="", and_more=""):
    shown = "        print(shown)" if "shown" in step else ""
    return PROGRAM.format(step=f"{step}\n{shown}", test=test, more=more, and_more=and_more)


def test_what_each_step_joins_is_joined(convert_text):
    report, result = convert_text(program())

    assert KEPT in result
    assert "        shown = mean(loss.detach())\n" in result
    assert not [f for f in report.findings if f.kind is Kind.NOTE and "goes away" in f.message]


def test_what_stands_in_the_loop_itself_is_joined(convert_text):
    step = "shown = loss.detach().clone()\n        dist.all_reduce(shown)\n        shown /= dist.get_world_size()"
    _, result = convert_text(program(step))

    assert '        shown.copy_(accelerator.reduce(shown, reduction="sum"))\n' in result
    assert "        shown /= accelerator.num_processes\n" in result


OTHERWISE = {
    "an evaluation, too": {"test": "loss = mean(loss)"},
    "under a condition": {"step": "shown = 0\n        if epoch:\n            shown = mean(loss.detach())"},
    "in what is shown itself": {"step": "print(mean(loss.detach()))"},
    "another test": {"more": ", flag=True", "and_more": " or not flag"},
}


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_others_come_to_goes_as_it_went(convert_text, name):
    report, result = convert_text(program(**OTHERWISE[name]))

    assert "reduce(" not in result
    assert [f for f in report.findings if f.kind is Kind.NOTE and "goes away" in f.message]
