"""A seed that a file sets under its main guard, to try itself out, is none of a program that imports the file."""

import pytest

from migrate.options import Options
from migrate.pipeline import run

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(x)


if __name__ == "__main__":
    torch.manual_seed(123)
    print(Net()(torch.rand(2, 4)))
"""
TRAIN = """\
import torch
from net import Net


def main():
    {seeded}
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    best = 1.0
    while best > 0.1:
        loss = net(torch.rand(8, 4)).mean() ** 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        best = min(best, loss.item())
        print(best)


if __name__ == "__main__":
    {here}
    main()
"""


@pytest.fixture
def converted(tmp_path, monkeypatch):
    def convert(**holes):
        (tmp_path / "net.py").write_text(NET)
        (tmp_path / "train.py").write_text(TRAIN.format(**{"seeded": "pass", "here": "pass"} | holes))
        monkeypatch.chdir(tmp_path)
        report = run(["train.py", "net.py"], Options())
        return {change.path: change.new.decode() for change in report.changes}, report.findings

    return convert


def test_it_does_not_seed_the_program(converted):
    after, findings = converted()

    texts = " ".join([*(finding.message for finding in findings), *after.values()])
    assert "set_seed(" in texts or "torch not seeded" in texts or "draws itself" in texts


@pytest.mark.parametrize("hole", ["seeded", "here"])
def test_the_main_guard_of_the_program_itself_does(converted, hole):
    after, findings = converted(**{hole: "torch.manual_seed(123)"})

    assert "set_seed(" not in after["train.py"]
    assert not any("seed" in finding.message for finding in findings)
