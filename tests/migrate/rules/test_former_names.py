"""Lengths of loaders read by the names that they were handed over with, below the prepare that gives them others."""

import pytest

PROGRAM = """
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, optimizer, loader):
        self.model = model
        self.optimizer = optimizer
        self.loader = loader
        {made}

    def train(self):
        total = 0.0
        for x, y in self.loader:
            self.optimizer.zero_grad()
            loss = nn.functional.mse_loss(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            {step}
            total += loss.item()
        return total{inside}


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1).to(device)
trainer = Trainer(model, optim.SGD(model.parameters(), lr=0.1), loader)
{again}
print(trainer.train(){outside})
"""
SUM = "total = sum(self.accelerator.gather_for_metrics([total]))\n"
MEAN = "total = sum(self.accelerator.gather_for_metrics([total])) / self.accelerator.num_processes\n"


def program(made="", step="", inside="", outside="", again=""):
    return PROGRAM.format(made=made, step=step, inside=inside, outside=outside, again=again)


@pytest.mark.parametrize(
    ("holes", "joined"),
    [
        ({"made": "self.steps = len(loader)", "inside": " / self.steps"}, SUM),
        ({"made": "self.steps = len(self.loader)", "inside": " / self.steps"}, MEAN),
        ({"inside": " / len(self.loader)"}, MEAN),
        ({"outside": " / len(loader)"}, SUM),
        ({"outside": " / len(trainer.loader)"}, MEAN),
        ({"again": "loader = trainer.loader", "outside": " / len(loader)"}, MEAN),
    ],
    ids=["its parameter", "its attribute", "in the loop's method", "the caller's name", "the object's", "a new name"],
)
def test_what_is_divided_by_the_length_of_all_data_is_added_up(convert_text, holes, joined):
    _, result = convert_text(program(**holes))

    assert joined in result


@pytest.mark.parametrize(("name", "is_prepared"), [("loader", True), ("self.loader", False)])
def test_a_schedule_over_the_length_of_all_data_is_stepped_for_each_process(convert_text, name, is_prepared):
    made = f"self.rate = optim.lr_scheduler.OneCycleLR(self.optimizer, 0.1, total_steps=len({name}))"
    _, result = convert_text(program(made=made, step="self.rate.step()"))

    assert ("self.optimizer, self.rate = self.accelerator.prepare(" in result) == is_prepared
    assert "self.accelerator.backward(loss)" in result
