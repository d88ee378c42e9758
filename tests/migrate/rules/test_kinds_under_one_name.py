"""Names that hold objects of several kinds: which of them prepare is handed."""

from migrate.report.model import Kind

BACKENDS = """
import torch
from torch import nn


class Table:
    def __init__(self, width):
        self.opt = None

    def fit(self, x, y):
        return 0


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 1)
        self.opt = torch.optim.SGD(self.parameters(), lr=0.1)

    def fit(self, x, y):
        for i in range(4):
            self.opt.zero_grad()
            loss = nn.functional.mse_loss(self.layer(x), y)
            loss.backward()
            self.opt.step()


def main():
    torch.manual_seed(0)
    for backend in {backends}:
        model = backend(4)
        model.fit(torch.ones(8, 4), torch.ones(8, 1))


main()
"""
LENGTHS = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def load(name):
    x, y = torch.ones(8, 4), torch.ones(8, 1)
    if name == "table":
        return x, y, {third}
    return DataLoader(TensorDataset(x, y), batch_size=4), DataLoader(TensorDataset(x, y), batch_size=2)


def train_table():
    torch.manual_seed(0)
    x, y, rows = load("table")
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(4):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x)[rows], y[rows]).backward()
        optimizer.step()


train_table()
"""


def test_a_name_that_is_at_times_no_model_is_refused(convert_text):
    report, _ = convert_text(BACKENDS.format(backends="[Table, Net]"))

    (left,) = [f for f in report.of(Kind.LEFT) if f.code == "MIG104"]
    assert left.message.startswith("model is at times a Table (")


def test_two_numbers_of_results_are_two_kinds_of_calls(convert_text):
    _, result = convert_text(LENGTHS.format(third="torch.arange(4)"))

    assert "net, optimizer = accelerator.prepare(net, optimizer)" in result
