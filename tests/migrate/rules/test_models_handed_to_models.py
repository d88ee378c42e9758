"""Prepared models that a method of a model is given: what it asks them for, the model inside has."""

import pytest

PROGRAM = """
import copy
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.inner = nn.Linear(2, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.inner(x))

    @staticmethod
    def packed(model, epoch):
        return {{"width": model.width, "state": model.state_dict(), "epoch": epoch}}


class Average(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.module = copy.deepcopy(model)

    @torch.no_grad()
    def update(self, model):
        self.take(model, 0.9)

    def take(self, other, decay):
        state = other.state_dict()
        for name, value in self.module.state_dict().items():
            value.mul_(decay).add_(state[name] * (1 - decay))


class Loss(nn.Module):
    def of(self, model, x, y):
        return nn.functional.mse_loss(model(x), y){weighed}


def main():
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.randn(16, 2), torch.randn(16, 1)), batch_size={batch})
    model = Net(3)
    average = Average(model)
    criterion = Loss()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for x, y in loader:
            loss = criterion.of(model, x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
        made = {packed}
        if epoch == 1:
            print(made["width"], sum(value.sum().item() for value in made["state"].values()))
            print(sum(value.sum().item() for value in average.module.state_dict().values()))


main()
"""
PACKED = {"of the model": "model.packed(model, epoch)", "of its class": "Net.packed(model, epoch)"}


def _text(packed="of the model", weighed="", batch=4):
    return PROGRAM.format(packed=PACKED[packed], weighed=weighed, batch=batch).lstrip("\n")


@pytest.mark.parametrize("packed", PACKED)
def test_what_is_asked_of_them_is_asked_of_the_model_inside(convert_text, packed):
    _, result = convert_text(_text(packed))

    assert "average.update(accelerator.unwrap_model(model))" in result
    assert "packed(accelerator.unwrap_model(model), epoch)" in result
    assert "loss = criterion.of(model, x, y)" in result


def test_on_two_processes_they_are_those_of_one(convert_text, numbers_printed):
    _, result = convert_text(_text(batch=2))

    assert numbers_printed(result, 2) == pytest.approx(numbers_printed(_text(), 1), rel=1e-5)


def test_a_loss_that_runs_a_model_and_asks_it_for_something_is_refused(refused_text):
    refused_text(_text(weighed=" * model.width"), "MIG119", "loss = criterion.of(model, x, y)", ["model.width"])
