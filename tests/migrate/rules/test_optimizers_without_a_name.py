"""Optimizers that are made as an argument of what trains with them."""

import pytest

PROGRAM = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, optimizer, epochs=2):
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    for epoch in range(epochs):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        scheduler.step()
        print(total / len(loader), optimizer.param_groups[0]["lr"])


class Trainer:
    def __init__(self, optimizer):
        self.optimizer = optimizer

    def fit(self, model, loader):
        train(model, loader, self.optimizer)


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32, 2), torch.randn(32, 1))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    model = nn.Linear(2, 1)
    {trained}


if __name__ == "__main__":
    main()
"""
ONCE = "train(model, loader, optim.SGD(model.parameters(), lr=0.1))"
BY_KEYWORD = "train(model, optimizer=optim.Adam(model.parameters()), loader=loader)"
TWICE = f"{ONCE}\n    train(model, loader, optim.SGD(model.parameters(), lr=0.01, momentum=0.9), 1)"
LOADER_TOO = "train(model, DataLoader(data, batch_size=8), optim.SGD(model.parameters(), lr=0.1))"


@pytest.mark.parametrize("trained", [ONCE, BY_KEYWORD, TWICE, LOADER_TOO])
def test_it_is_prepared_where_it_is_made(trained, convert_text):
    _, text = convert_text(PROGRAM.format(trained=trained))
    made = "".join(text.partition("def main")[2].split())
    assert made.count("accelerator.prepare(optim.") == trained.count("optim.")


@pytest.mark.parametrize("trained", [TWICE, LOADER_TOO])
def test_numbers_are_those_of_one_process(trained, convert_text, numbers_printed):
    source = PROGRAM.format(trained=trained)
    _, text = convert_text(source)
    alone = numbers_printed(text, 1)
    assert alone == numbers_printed(source, 1)
    assert numbers_printed(text.replace("batch_size=8", "batch_size=4"), 2) == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize(
    "trained",
    [
        "for rate in (0.1, 0.01):\n        train(model, loader, optim.SGD(model.parameters(), lr=rate))",
        "train(model, loader, optim.SGD(model.parameters(), lr=0.1) if data else optim.Adam(model.parameters()))",
    ],
)
def test_what_is_made_otherwise_is_refused(trained, convert_text):
    source = PROGRAM.format(trained=trained)
    report, text = convert_text(source)
    assert text == source
    assert "MIG901" in {finding.code for finding in report.findings}


def test_what_an_object_keeps_is_prepared_in_it(convert_text):
    kept = "trainer = Trainer(optim.SGD(model.parameters(), lr=0.1))\n    trainer.fit(model, loader)"
    _, text = convert_text(PROGRAM.format(trained=kept))
    assert "trainer = Trainer(optim.SGD(model.parameters(), lr=0.1))" in text
    assert "loader, model, trainer.optimizer = accelerator.prepare(" in text
