"""One meter that a training and a validation feed by turns, also one that hands on what it is given."""

import pytest

SOURCE = """
import numpy as np
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Metric:
    def reset(self):
        pass


class Matrix(Metric):
    def __init__(self, n):
        super().__init__()
        self.n = n
        self.matrix = np.ndarray((n, n), dtype=np.int32)
        self.reset()

    def reset(self):
        self.matrix.fill({zero})

    def add(self, predicted, target):
        index = predicted.cpu().numpy() + self.n * target.cpu().numpy()
        self.matrix += np.bincount(index.astype(np.int32), minlength=self.n**2).reshape((self.n, self.n))


class Overlap(Metric):
    def __init__(self, n):
        super().__init__()
        self.counts = Matrix(n)

    def reset(self):
        self.counts.reset()

    def update(self, predicted, target):
        self.counts.add(predicted.view(-1), target.view(-1))

    def value(self):
        matrix = self.counts.matrix
        return np.diag(matrix).sum() / matrix.sum()


class Train:
    def __init__(self, model, loader, optimizer, metric):
        self.model, self.loader, self.optimizer, self.metric = model, loader, optimizer, metric

    def run(self):
        self.model.train()
        self.metric.reset()
        for x, y in self.loader:
            self.optimizer.zero_grad()
            output = self.model(x)
            nn.functional.cross_entropy(output, y).backward()
            self.optimizer.step()
            self.metric.update(output.argmax(1), y)
        return self.metric.value()


class Test:
    def __init__(self, model, loader, metric):
        self.model, self.loader, self.metric = model, loader, metric

    def run(self):
        self.model.eval()
        self.metric.reset()
        with torch.no_grad():
            for x, y in self.loader:
                self.metric.update(self.model(x).argmax(1), y)
        return self.metric.value()


def main():
    loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8).long()), batch_size=4)
    held = DataLoader(TensorDataset(torch.ones(6, 4), torch.ones(6).long()), batch_size=4)
    model = nn.Linear(4, 2)
    metric = Overlap(2)
    train = Train(model, loader, optim.SGD(model.parameters(), lr=0.1), metric)
    test = Test(model, held, {shared})
    best = 0
    for epoch in range(2):
        print(train.run())
        accuracy = test.run()
        if accuracy > best:
            best = accuracy
            torch.save(model.state_dict(), "best.pt")


main()
"""


@pytest.mark.parametrize("shared", ["metric", "Overlap(2)"])
def test_its_sums_are_joined_after_the_training(convert_text, shared):
    _, result = convert_text(SOURCE.format(shared=shared, zero=0))
    joined = "self.metric.counts.matrix = self.accelerator.reduce(self.metric.counts.matrix)"

    assert joined in result
    assert result.count(".reduce(") == 1


def test_one_that_begins_above_zero_may_not_decide(convert_text):
    report, result = convert_text(SOURCE.format(shared="metric", zero=1))

    assert "accelerator" not in result
    assert any(f.code == "MIG122" and "goes by accuracy" in f.message for f in report.findings)
