"""Objects that are handed their loaders in a dictionary; loops that a flag turns which says `not cross_valid`."""

import pytest

SOLVER = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Solver:
    def __init__(self, {parameters}, model, optimizer):
        self.tr_loader = {train}
        self.cv_loader = {held_out}
        self.model = model
        self.optimizer = optimizer

    def train(self):
        for epoch in range(2):
            self.model.train()
            trained = self.run_one_epoch()
            self.model.eval()
            with torch.no_grad():
                held_out = self.run_one_epoch(cross_valid=True)
            print(trained, held_out)

    def run_one_epoch(self, cross_valid=False):
        total = 0.0
        {chosen}
        for i, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(self.model(x), y)
            if {trains}:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            total += loss.item()
        return total / (i + 1)


def evaluate(model, loader):
    total = 0.0
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            total += ((model(x) - y) ** 2).sum().item()
    print(total)


def count(data):
    return len(data["tr"])


def main():
    torch.manual_seed(0)
    tr = DataLoader(TensorDataset(torch.randn(32, 2), torch.randn(32, 1)), batch_size=8)
    cv = DataLoader(TensorDataset(torch.randn(13, 2), torch.randn(13, 1)), batch_size=8)
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    data = {{"tr": tr, "cv": cv}}
    solver = Solver({given}, model, optimizer)
    solver.train()
    {after}


if __name__ == "__main__":
    main()
"""
PLAIN = {
    "parameters": "data",
    "train": 'data["tr"]',
    "held_out": 'data["cv"]',
    "chosen": "loader = self.tr_loader if not cross_valid else self.cv_loader",
    "trains": "not cross_valid",
    "given": "data",
    "after": "pass",
}
BY_NAME = {"parameters": "tr, cv", "train": "tr", "held_out": "cv", "given": "tr, cv"}
IN_THE_OBJECT = "self.tr_loader, self.model, self.optimizer = self.accelerator.prepare("
ABOVE = "    tr, model, optimizer = accelerator.prepare(tr, model, optimizer)\n"


@pytest.mark.parametrize(
    "holes",
    [
        {},
        {"chosen": "loader = self.cv_loader if cross_valid else self.tr_loader"},
        {"chosen": "loader = self.tr_loader if not cross_valid else self.cv_loader", **BY_NAME},
        {"after": 'print(len(data["tr"]), count(data))'},
    ],
)
def test_the_object_prepares_what_it_takes_out_of_the_dictionary(holes, convert_text):
    report, text = convert_text(SOLVER.format_map(PLAIN | holes))
    assert IN_THE_OBJECT in text, report


@pytest.mark.parametrize(
    "holes",
    [
        {"after": 'evaluate(model, data["tr"])'},
        {"after": "evaluate(model, tr)", **BY_NAME},
        {"after": "evaluate(loader=tr, model=model)", **BY_NAME},
        {"after": 'for x, y in data["tr"]:\n        print(len(x))'},
    ],
)
def test_what_goes_over_the_raw_loader_later_gets_the_prepared_one(holes, convert_text):
    report, text = convert_text(SOLVER.format_map(PLAIN | holes))
    assert IN_THE_OBJECT not in text
    assert text == SOLVER.format_map(PLAIN | holes) or ABOVE in text, report


def test_a_loader_that_is_chosen_by_another_test_is_refused(refused_text):
    refused_text(SOLVER.format_map(PLAIN | {"trains": "not self.cv_loader"}), "MIG114", "enumerate(loader)")


def test_an_object_that_keeps_the_dictionary_as_well_is_refused(refused_text):
    text = SOLVER.format_map(PLAIN).replace(
        "        self.model = model\n", "        self.model = model\n        self.data = data\n"
    )
    refused_text(text.replace("enumerate(loader)", 'enumerate(self.data["tr"])'), "MIG104", "self.tr_loader")


@pytest.mark.parametrize("after", ["pass", 'evaluate(model, data["tr"])'])
def test_numbers_are_those_of_one_process(after, convert_text, numbers_printed):
    source = SOLVER.format_map(PLAIN | {"after": after})
    _, text = convert_text(source)
    alone = numbers_printed(text, 1)
    assert alone == numbers_printed(source, 1)
    assert numbers_printed(text.replace("batch_size=8", "batch_size=4", 1), 2) == pytest.approx(alone, rel=1e-5)
