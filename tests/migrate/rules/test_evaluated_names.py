"""A model that is chosen by `eval("nets." + name + ".get_net")` is one of those that the package has."""

import pytest

from migrate.options import Options
from migrate.pipeline import run
from migrate.report.model import Kind

TRAIN = """\
import argparse

import nets
import torch
from nets import small
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--net", default="small")
args = parser.parse_args()
torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = {made}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    loss = ((model(x) - y) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
NET = """\
from torch import nn


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, 1)

    def forward(self, x):
        return self.layer(x{moved})


def get_net(size):
    return Net(size)
"""
MADE = {
    "put together": 'eval("nets." + args.net + ".get_net")(4)',
    "in a text with holes": 'eval(f"nets.{args.net}.get_net")(4)',
    "some module": "eval(args.net).Net(4)",
}


@pytest.fixture
def converted(tmp_path, monkeypatch):
    def convert(made, moved=""):
        (tmp_path / "nets").mkdir()
        (tmp_path / "nets" / "__init__.py").write_text("import nets.small\nimport nets.large\n")
        for name in ("small", "large"):
            (tmp_path / "nets" / f"{name}.py").write_text(NET.format(moved=moved if name == "large" else ""))
        (tmp_path / "train.py").write_text(TRAIN.format(made=made))
        monkeypatch.chdir(tmp_path)
        report = run(["."], Options())
        after = {change.path: change.new.decode() for change in report.changes}
        return after, [finding for finding in report.findings if finding.kind is Kind.LEFT]

    return convert


@pytest.mark.parametrize("name", MADE)
def test_it_is_prepared(converted, name):
    after, left = converted(MADE[name])

    assert not left
    assert "loader, model, optimizer = accelerator.prepare(loader, model, optimizer)" in after["train.py"]


NOT_NAMED = {
    "an expression": "eval(args.net)(4)",
    "a name that no module has": 'eval("nets." + args.net + ".make_net")(4)',
    "a module that is not there": 'eval("others." + args.net + ".get_net")(4)',
}


@pytest.mark.parametrize("name", NOT_NAMED)
def test_what_names_nothing_is_not_known(converted, name):
    after, left = converted(NOT_NAMED[name])

    assert not after
    assert {finding.code for finding in left} == {"MIG902"}
