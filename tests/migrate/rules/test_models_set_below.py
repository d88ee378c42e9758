"""`fit(model, data)` of a trainer that sets its model by another method prepares what all of its methods go on with."""

import pytest

PROGRAM = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Trainer:
    def __init__(self, epochs):
        self.epochs = epochs

    def set_data(self, data):
        self.loader = DataLoader(data, batch_size=8)

    def set_model(self, model):
        self.model = model

    def fit(self, model, data):
        self.set_data(data)
        self.set_model(model)
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(self.epochs):
            self.epoch()
        {after}

    def epoch(self):
        total = 0.0
        for x, y in self.loader:
            loss = (self.model(x) - y).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        print(round(total / len(self.loader), 4))


data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
model = nn.Linear(4, 1)
trainer = Trainer(2)
trainer.fit(model, data)
{below}
"""
PREPARED = """\
        self.loader, self.model, self.optimizer = self.accelerator.prepare(
            self.loader, self.model, self.optimizer
        )
"""


@pytest.mark.parametrize("after", ["pass", "print(round(model.weight.sum().item(), 4))"])
def test_the_method_prepares_what_the_others_go_on_with(convert_text, numbers_printed, after):
    _, converted = convert_text(PROGRAM.format(after=after, below=""))

    assert PREPARED in converted
    halved = converted.replace("batch_size=8", "batch_size=4")
    assert numbers_printed(halved, 2) == pytest.approx(numbers_printed(converted, 1), abs=2e-4)


@pytest.mark.parametrize(
    "after", ["print(model(torch.ones(1, 4)))", "for _ in range(2):\n            print(model.bias)"]
)
def test_a_method_that_goes_on_with_what_it_was_handed_keeps_that(refused_text, after):
    source = PROGRAM.format(after=after, below="")

    refused_text(source, "MIG104", "self.model(x)", "is the model as it was before prepare")


@pytest.mark.parametrize("after", ["other = model", "def show():\n            print(model(torch.ones(1, 4)))"])
def test_another_name_and_a_function_inside_go_on_with_it_as_well(refused_text, after):
    refused_text(
        PROGRAM.format(after=after, below=""), "MIG104", "self.model(x)", "is the model as it was before prepare"
    )


def test_a_method_that_is_handed_it_to_train_is_prepared_under_that_name_or_not_at_all(convert_text):
    source = PROGRAM.replace("self.epoch()", "self.epoch(model)").replace("def epoch(self)", "def epoch(self, model)")
    _, converted = convert_text(
        source.replace("loss = (self.model(x)", "loss = (model(x)").format(after="pass", below="")
    )

    assert "self.model, self.optimizer = self.accelerator.prepare(" not in converted


def test_who_has_handed_the_model_over_goes_on_with_the_raw_one(refused_text):
    source = PROGRAM.format(after="pass", below="print(model(torch.ones(1, 4)))")

    refused_text(source, "MIG104", "model(torch.ones(1, 4))", "is read here as it was before prepare")
