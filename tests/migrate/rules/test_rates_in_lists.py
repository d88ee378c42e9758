"""Learning rates that are put into a list, or a dictionary, before they are set: they go by what was put there."""

import pytest

SOURCE = """
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Cosine:
    def __init__(self, optimizer, batch_size, samples):
        self.optimizer = optimizer
        self.rates = [group["lr"] for group in optimizer.param_groups]
        self.told = {{"at": 0, "lr": 0.1}}
        self.batch_size = batch_size
        self.samples = samples

    def set_rates(self, rates):
        for i in range(len(rates)):
            self.optimizer.param_groups[i]["lr"] = rates[i]

    def step(self, epoch, batch):
        {does}


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.ones(16, 4), torch.ones(16, 1)), batch_size=4)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = Cosine(optimizer, loader.batch_size, len(loader.sampler))
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.mse_loss(model(x), y)
        scheduler.step(epoch, i)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(optimizer.param_groups[0]["lr"])
"""
RATE = "0.1 * math.cos(epoch + batch * self.batch_size / self.samples)"
BY_BATCHES = {
    "an item": f"self.rates[0] = {RATE}\n        self.set_rates(self.rates)",
    "all items": f"for k in range(1):\n            self.rates[k] = {RATE}\n        self.set_rates(self.rates)",
    "added": f"rates = []\n        rates.append({RATE})\n        self.set_rates(rates)",
    "under a key": f'self.told["lr"] = {RATE}\n        self.set_rates([self.told["lr"]])',
}
AS_THEY_ARE = {
    "by epochs": "self.rates[0] = 0.1 * math.cos(epoch)\n        self.set_rates(self.rates)",
    "a count under another key": 'self.told["at"] = batch / 1000\n        self.set_rates([self.told["lr"]])',
}


@pytest.mark.parametrize("name", BY_BATCHES)
def test_a_count_that_a_rate_goes_by_is_that_of_all_processes(convert_text, name):
    _, result = convert_text(SOURCE.format(does=BY_BATCHES[name]))
    assert "scheduler.step(epoch, i * accelerator.num_processes)" in result


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_a_count_that_no_rate_goes_by_stays(convert_text, name):
    _, result = convert_text(SOURCE.format(does=AS_THEY_ARE[name]))
    assert "scheduler.step(epoch, i)" in result


def test_the_rates_are_those_of_one_process(convert_text, numbers_printed):
    _, result = convert_text(SOURCE.format(does=BY_BATCHES["all items"]))
    alone = numbers_printed(result, 1)
    assert len(set(alone)) == 8
    assert numbers_printed(result.replace("batch_size=4", "batch_size=2"), 2) == alone
