"""Objects that have made the accelerator, and are handed loaders which have no name."""

import pytest

TRAINER = """\
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def made(count):
    return TensorDataset(torch.arange(count * 2.0).view(count, 2) / count, torch.ones(count, 1))


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)

    def train(self, loader):
        self.model.train()
        for x, y in loader:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(x), y).backward()
            self.optimizer.step()

    def evaluate(self, loader):
        self.model.eval()
        total = 0.0
        with torch.no_grad():
            for x, y in loader:
                total += ((self.model(x) - y) ** 2).sum().item()
        print(total)


if __name__ == "__main__":
    torch.manual_seed(0)
    {before}
    {trained}
    trainer.evaluate(DataLoader(made(13), batch_size=8))
"""
CALL = "trainer.train(DataLoader(made(32), batch_size=8))"
AFTER_IT = {"before": "trainer = Trainer(nn.Linear(2, 1))", "trained": CALL}
IN_A_LOOP = {**AFTER_IT, "trained": f"for _ in range(2):\n        {CALL}"}


@pytest.mark.parametrize("holes", [AFTER_IT, IN_A_LOOP])
def test_the_object_prepares_what_is_made_for_it(holes, convert_text):
    _, text = convert_text(TRAINER.format_map(holes))
    assert "trainer.train(trainer.accelerator.prepare(" in text


def test_numbers_are_those_of_one_process(convert_text, numbers_printed):
    source = TRAINER.format_map(IN_A_LOOP)
    _, text = convert_text(source)
    alone = numbers_printed(text, 1)
    assert alone == numbers_printed(source, 1)
    halves = text.replace("made(32), batch_size=8", "made(32), batch_size=4")
    assert halves != text
    assert numbers_printed(halves, 2) == pytest.approx(alone, rel=1e-5)


def test_what_is_made_above_the_object_is_refused(refused_text):
    loaders = "[DataLoader(made(n), batch_size=8) for n in range(9, torch.get_num_threads() + 30)]"
    above = f"loaders = {loaders}\n    trainer = Trainer(nn.Linear(2, 1))"
    trained = "for loader in loaders:\n        trainer.train(loader)"
    refused_text(TRAINER.format_map({"before": above, "trained": trained}), "MIG901", "loaders = [DataLoader")
