"""Scripts that make their schedulers in one function: the steps of one are no steps of the other."""

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

MAKES = """\
from torch.optim.lr_scheduler import LambdaLR


def warmed(optimizer, steps):
    def rate(step):
        return max(0.0, 1 - step / steps)

    return LambdaLR(optimizer, rate)
"""
TRAINS = """\
import torch
from schedule import warmed
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader):
    optimizer = optim.SGD(model.parameters(), lr={rate})
    schedule = warmed(optimizer, 300)
    for epoch in range(3):
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
{more}

if __name__ == "__main__":
    rows = TensorDataset(torch.ones(8, 2), torch.ones(8, 1))
    train(nn.Linear(2, 1), DataLoader(rows, batch_size=4))
"""


@pytest.fixture
def converted(tmp_path, monkeypatch):
    def convert(**scripts):
        (tmp_path / "schedule.py").write_text(MAKES)
        for name, text in scripts.items():
            (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        report = run(["."], Options())
        return report, {change.path for change in report.changes}

    return convert


def test_both_are_converted(converted):
    report, changed = converted(tags=TRAINS.format(rate=0.1, more=""), spans=TRAINS.format(rate=0.2, more=""))

    assert changed == {"tags.py", "spans.py"}
    assert not [finding for finding in report.findings if finding.kind is Kind.LEFT]


def test_its_own_step_after_each_epoch_is_seen(converted):
    more = "        schedule.step()\n"

    report, _ = converted(tags=TRAINS.format(rate=0.1, more=""), spans=TRAINS.format(rate=0.2, more=more))

    left = {(finding.path, finding.code) for finding in report.findings if finding.kind is Kind.LEFT}
    assert ("spans.py", "MIG118") in left
